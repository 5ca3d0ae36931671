"""Nets for bench_onnx.py: (function that makes net and inputs) by name, with random weights.

torchvision's and timm's nets have their own sizes but for small pictures; those of transformers are
small configurations; the others are written here, as people write them.
"""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def image(side, net):
    return net, (torch.randn(4, 3, side, side),)


def vision(name, side=64, **words):
    def make():
        import torchvision
        return image(side, getattr(torchvision.models, name)(weights=None, num_classes=10, **words))
    return make


def vision_vit():
    from torchvision.models import VisionTransformer
    return image(32, VisionTransformer(32, 8, 2, 4, 64, 128, num_classes=10))


def vision_swin():
    from torchvision.models import SwinTransformer
    return image(64, SwinTransformer([4, 4], 32, [2, 2], [2, 4], [4, 4], num_classes=10))


def vision_segment(name):
    def make():
        import torchvision

        class Out(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = getattr(torchvision.models.segmentation, name)(
                    weights=None, weights_backbone=None, num_classes=5)

            def forward(self, x):
                return self.net(x)["out"]
        return image(64, Out())
    return make


def timm_net(name, side=64, **words):
    def make():
        import timm
        return image(side, timm.create_model(name, pretrained=False, num_classes=10, **words))
    return make


def tokens(count, time, padded=False):
    ids = torch.randint(1, count, (4, time))
    ids[:2, 5:] *= not padded
    return ids


# ---- transformers ------------------------------------------------------------------------------

class First(nn.Module):
    """Gives the logits only."""

    def __init__(self, net, key="logits"):
        super().__init__()
        self.net, self.key = net, key

    def forward(self, input_ids):
        return self.net(input_ids=input_ids, use_cache=False)[self.key]


class Masked(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, input_ids, attention_mask):
        return self.net(input_ids=input_ids, attention_mask=attention_mask).logits


def hugging(config, model, wrap=First, **words):
    def make():
        import transformers
        net = getattr(transformers, model)(getattr(transformers, config)(**words))
        ids = tokens(90, 12)
        if wrap is Masked:
            mask = torch.ones_like(ids)
            mask[1, 7:] = 0
            return wrap(net), (ids, mask)
        return wrap(net), (ids,)
    return make


def hugging_vit():
    import transformers

    class Picture(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = transformers.ViTForImageClassification(transformers.ViTConfig(
                hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                image_size=32, patch_size=8, num_labels=10))

        def forward(self, x):
            return self.net(pixel_values=x).logits
    return image(32, Picture())


BERT = dict(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=64, max_position_embeddings=16)
LLAMA = dict(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, intermediate_size=64, max_position_embeddings=16)


# ---- own nets ----------------------------------------------------------------------------------

def mlp():
    return nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 32),
                         nn.SiLU(), nn.LayerNorm(32), nn.Linear(32, 5)), (torch.randn(4, 20),)


def cnn():
    return image(16, nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.LeakyReLU(0.1),
        nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ELU(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(256, 10)))


class LSTMClassifier(nn.Module):
    def __init__(self, bidirectional=False, kind=nn.LSTM, layers=2):
        super().__init__()
        self.embed = nn.Embedding(50, 16, padding_idx=0)
        self.rnn = kind(16, 24, layers, batch_first=True, bidirectional=bidirectional)
        self.out = nn.Linear(48 if bidirectional else 24, 3)

    def forward(self, ids):
        y, _ = self.rnn(self.embed(ids))
        return self.out(y.mean(1))


class ResidualLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.rnn = nn.ModuleList(nn.LSTM(16, 16, batch_first=True) for _ in range(3))
        self.mix = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
        self.out = nn.Linear(16, 3)

    def forward(self, ids):
        x = self.embed(ids)
        for rnn, mix in zip(self.rnn, self.mix):
            x = x + mix(rnn(x)[0])
        return self.out(x[:, -1])


class TextCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.convs = nn.ModuleList(nn.Conv1d(16, 8, k) for k in (2, 3, 4))
        self.out = nn.Linear(24, 3)

    def forward(self, ids):
        x = self.embed(ids).transpose(1, 2)
        return self.out(torch.cat([F.relu(conv(x)).amax(2) for conv in self.convs], 1))


class WaveCNN(nn.Module):
    """Conv1d over a signal, with pools."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(2, 8, 5, padding=2), nn.BatchNorm1d(8), nn.ReLU(),
                                 nn.MaxPool1d(2), nn.Conv1d(8, 16, 3, stride=2, padding=1),
                                 nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 4))

    def forward(self, x):
        return self.net(x)


class SignalNet(nn.Module):
    """Every layer of signals: dilated, depthwise, transposed convolutions, norm, pools, gates."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(3, 8, 3, padding=2, dilation=2, bias=False),
                                  nn.BatchNorm1d(8), nn.LeakyReLU(0.1), nn.MaxPool1d(2))
        self.depth, self.point = nn.Conv1d(8, 8, 3, padding=1, groups=8), nn.Conv1d(8, 8, 1)
        self.norm, self.act = nn.BatchNorm1d(8), nn.PReLU(8)
        self.gate = nn.Sequential(nn.AdaptiveAvgPool1d(1), nn.Conv1d(8, 8, 1), nn.Sigmoid())
        self.pool = nn.AvgPool1d(3, 2, 1, count_include_pad=False)
        self.up = nn.ConvTranspose1d(8, 6, 4, 2, 1)
        self.out = nn.Linear(6, 5)

    def forward(self, x):
        x = self.stem(x)
        y = self.act(self.norm(self.point(self.depth(x))))
        x = self.pool(x + y * self.gate(y))
        return self.out(F.silu(self.up(x)).mean(2))


class Block(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width), nn.Dropout(0.1))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(c, dim=2)
        q, k, v = (z.view(n, t, self.heads, c // self.heads).transpose(1, 2) for z in (q, k, v))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = torch.tril(torch.ones(t, t, dtype=torch.bool, device=x.device))
            score = q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5
            y = self.drop(score.masked_fill(~mask, float("-inf")).softmax(-1)) @ v
        x = x + self.drop(self.proj(y.transpose(1, 2).reshape(n, t, c)))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, fused=True, tied=False):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(50, 32), nn.Embedding(16, 32)
        self.h = nn.ModuleList(Block(32, 4, fused) for _ in range(2))
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 50, bias=False)
        if tied:
            self.head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        return self.head(self.norm(x))


class Encoder(nn.Module):
    """nn.TransformerEncoder, with or without the batch first, with or without padding."""

    def __init__(self, batch_first, padded=False):
        super().__init__()
        self.batch_first, self.padded = batch_first, padded
        self.embed = nn.Embedding(50, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=batch_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(32, 3)

    def forward(self, ids):
        x = self.embed(ids if self.batch_first else ids.transpose(0, 1))
        x = self.encoder(x, src_key_padding_mask=ids == 0 if self.padded else None)
        return self.out(x.mean(1 if self.batch_first else 0))


class Typed(nn.Module):
    """How BERT begins: words, the type of their sentence, places, a norm. `whole`: a row of types
    for each sample, as BERT writes it."""

    def __init__(self, whole=True):
        super().__init__()
        self.whole = whole
        self.words, self.types, self.places = (nn.Embedding(n, 16) for n in (50, 2, 12))
        self.norm, self.out = nn.LayerNorm(16), nn.Linear(16, 3)

    def forward(self, ids):
        types = torch.zeros(ids.shape if self.whole else (1, ids.shape[1]), dtype=torch.long)
        x = self.words(ids) + self.types(types) + self.places(torch.arange(ids.shape[1]))
        return self.out(self.norm(x).mean(1))


class Seq2Seq(nn.Module):
    """nn.Transformer."""

    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(50, 32), nn.Embedding(50, 32)
        self.net = nn.Transformer(32, 4, 1, 1, 64, batch_first=True)
        self.out = nn.Linear(32, 50)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.out(self.net(self.source(source), self.target(target), tgt_mask=mask,
                                 tgt_is_causal=True))


class Translator(nn.Module):
    """LSTM encoder and decoder with attention between them."""

    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(50, 16), nn.Embedding(50, 16)
        self.encoder = nn.LSTM(16, 16, batch_first=True, bidirectional=True)
        self.decoder = nn.LSTM(16, 32, batch_first=True)
        self.mix = nn.LSTM(64, 32, batch_first=True)
        self.out = nn.Linear(32, 50)

    def forward(self, source, target):
        memory, _ = self.encoder(self.source(source))
        y, _ = self.decoder(self.target(target))
        context = torch.softmax(y @ memory.transpose(1, 2), -1) @ memory
        return self.out(self.mix(torch.cat([y, context], -1))[0])


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        def two(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
                                 nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())
        self.a, self.b, self.c = two(3, 8), two(8, 16), two(16, 32)
        self.up1, self.up2 = nn.ConvTranspose2d(32, 16, 2, 2), nn.Upsample(scale_factor=2)
        self.d, self.e = two(32, 16), two(24, 8)
        self.out = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        c = self.c(F.max_pool2d(b, 2))
        d = self.d(torch.cat([self.up1(c), b], 1))
        return self.out(self.e(torch.cat([self.up2(d), a], 1)))


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.PReLU(8), nn.Conv2d(8, 16, 3, 2, 1), nn.Mish(),
            nn.ConvTranspose2d(16, 8, 3, 2, 1, 1), nn.Hardswish(),
            nn.ConvTranspose2d(8, 3, 3, 2, 1, 1), nn.Sigmoid())

    def forward(self, x):
        return self.net(x)


class Padded(nn.Module):
    """Pads of its own, on two sides only, as TensorFlow's nets have them."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, 2), nn.Conv2d(8, 16, 3)
        self.out = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.a(F.pad(x, (0, 1, 0, 1))))
        x = F.relu(self.b(nn.ZeroPad2d(1)(x)))
        return F.log_softmax(self.out(x.mean((2, 3))), -1)


VISION = ("resnet18", "resnet50", "resnext50_32x4d", "densenet121",
          "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet0_5",
          "efficientnet_b0", "efficientnet_v2_s", "regnet_y_400mf", "convnext_tiny")
TIMM = ("vit_tiny_patch16_224", "deit_tiny_patch16_224", "mixer_s32_224")

NETS = {
    "mlp": mlp, "cnn": cnn,
    "lstm": lambda: (LSTMClassifier(), (tokens(50, 9),)),
    "bilstm": lambda: (LSTMClassifier(True), (tokens(50, 9),)),
    "residual-lstm": lambda: (ResidualLSTM(), (tokens(50, 9),)),
    "gru": lambda: (LSTMClassifier(kind=nn.GRU), (tokens(50, 9),)),
    "text-cnn": lambda: (TextCNN(), (tokens(50, 9),)),
    "wave-cnn": lambda: (WaveCNN(), (torch.randn(4, 2, 32),)),
    "signal": lambda: (SignalNet(), (torch.randn(4, 3, 24),)),
    "gpt": lambda: (GPT(), (tokens(50, 12),)),
    "gpt-written": lambda: (GPT(False), (tokens(50, 12),)),
    "gpt-tied": lambda: (GPT(True, True), (tokens(50, 12),)),
    "encoder": lambda: (Encoder(True), (tokens(50, 9),)),
    "encoder-time-first": lambda: (Encoder(False), (tokens(50, 9),)),
    "encoder-padded": lambda: (Encoder(True, True), (tokens(50, 9, True),)),
    "typed": lambda: (Typed(), (tokens(50, 9),)),
    "typed-once": lambda: (Typed(False), (tokens(50, 9),)),
    "seq2seq": lambda: (Seq2Seq(), (tokens(50, 9), tokens(50, 7))),
    "translator": lambda: (Translator(), (tokens(50, 9), tokens(50, 7))),
    "unet": lambda: image(16, UNet()),
    "autoencoder": lambda: image(16, Autoencoder()),
    "padded": lambda: image(15, Padded()),
    **{"torchvision " + name: vision(name) for name in VISION},
    "torchvision alexnet": vision("alexnet", 224),
    "torchvision vgg11_bn": vision("vgg11_bn", 224),
    "torchvision googlenet": vision("googlenet", 96, aux_logits=False, init_weights=False),
    "torchvision inception_v3": vision("inception_v3", 96, aux_logits=False, init_weights=False),
    "torchvision vit": vision_vit,
    "torchvision swin": vision_swin,
    "torchvision fcn_resnet50": vision_segment("fcn_resnet50"),
    **{"timm " + name: timm_net(name, 224) for name in TIMM},
    "timm convnext_atto": timm_net("convnext_atto"),
    "timm efficientnet_lite0": timm_net("efficientnet_lite0"),
    "timm ghostnet_050": timm_net("ghostnet_050"),
    "timm mobilevit_xxs": timm_net("mobilevit_xxs"),
    "timm resnetv2_50": timm_net("resnetv2_50"),
    "transformers bert": hugging("BertConfig", "BertForSequenceClassification", **BERT),
    "transformers bert masked": hugging("BertConfig", "BertForSequenceClassification", Masked,
                                        **BERT),
    "transformers distilbert": hugging(
        "DistilBertConfig", "DistilBertForSequenceClassification", vocab_size=100, dim=32,
        n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=16),
    "transformers gpt2": hugging("GPT2Config", "GPT2LMHeadModel", vocab_size=100, n_embd=32,
                                 n_layer=2, n_head=4, n_positions=16),
    "transformers llama": hugging("LlamaConfig", "LlamaForCausalLM", **LLAMA),
    "transformers vit": hugging_vit,
}
