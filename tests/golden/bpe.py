#!/usr/bin/env python3
"""Golden files of bpe/, from Hugging Face's tokenizers: python3 tests/golden/bpe.py

train.txt: a text. learnt.json: what BpeTrainer makes of it. gpt2.json, roberta.json, llama3.json,
qwen.json, o200k.json: these tokens, split as those models split texts. cases.json: texts, and their
ids by each. `python3 -m venv DIR && DIR/bin/pip install tokenizers==0.23.3` has what is needed."""
import json
import random
import unicodedata
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

HERE = Path(__file__).resolve().parent / "bpe"
TOKENS = 420
ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PATTERNS = {
    "llama3": ENDINGS + "|" + REST % "{1,3}",
    "qwen": ENDINGS + "|" + REST % "",
    "o200k": (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{ENDINGS}?|"
              rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{ENDINGS}?|\p{{N}}{{1,3}}|"
              r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
}
LINES = """\
The boards of the ring pass what they have computed to the next board of the ring.
We'll see that it doesn't matter, they've said; it's the board's own time.
Die Bretter reichen weiter, was sie gerechnet haben; für größere Netze genügt das.
Les cartes se passent les gradients, et l'hôte réunit ce que chacune a calculé.
Доски передают друг другу то, что они вычислили, и ждут следующего шага.
板は計算した値を次の板に渡す。板は輪になっている。
한 보드는 다음 보드로 값을 보낸다.
लूप में बोर्ड मान आगे भेजते हैं।
There are 12 boards, 345 layers and 6789 samples, or 50 % of 2026...
if (count > 0) {\t return value[count - 1] != 0;  // the last one
😀 👍🏽 👩‍💻 go on, go on!\r
"""
TEXTS = [
    "", " ", "   ", "\n", "\r\n", " \n ", "a", " a", "a ", "the boards  of   the ring   ",
    "We'll see, WE'LL SEE, it's it'S 'twas don't'd 're", "'s't're've'm'll'd", "'\u017f'\u212a",
    "1 12 123 1234 12345 1,234.5 \u0663\u0664 \xbd \u2167", "x1y22z333",
    "\t\tindented\n\n\nlines",
    "line\r\nline\r\n\r\nline\r", "a\u00a0b\u2003c\u3000d\u180ee\u0085f\u001cg\u200bh\ufeffi",
    "na\xefve caf\xe9", "nai\u0308ve cafe\u0301", "a\u0323\u0307", "\u0301alone", "q\u0307\u0323",
    "\U0001f600\U0001f44d\U0001f3fd \U0001f469\u200d\U0001f4bb\U0001f1e9\U0001f1ea go on",
    "\u0414\u043e\u0441\u043a\u0438 \u043f\u0435\u0440\u0435\u0434\u0430\u044e\u0442",
    "\u677f\u306f\u8a08\u7b97\u3057\u305f\u5024\u3092\u6e21\u3059\u3002",
    "\ud55c \ubcf4\ub4dc\ub85c",
    "\u092c\u094b\u0930\u094d\u0921 \u092e\u093e\u0928", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627", "\U00010348\U000e0001\u0378\uffff",
    "value[count - 1] != 0;  // last\n", "a_b-c.d,e:f;g!?", "//\n/\n", "...!!!\n\n",
    "\x0b\x0c\x1b\x7f",
    "<|end|>", "go<|end|>on", "<|end", "<|end|><|end|>", "<|endless|>", "a <mask> b", "a\n <mask>b",
    "<s>the ring</s>", "xx  x xx   x", "go on<|im_end|> \n\n next", "<|im_start|><|im_end|>",
    "ab " * 40, "a" * 100, " " * 50 + "x" + " " * 50,
]


def make_texts():
    """Those above, and mixtures of them."""
    draw = random.Random(1)
    pieces = [text for text in TEXTS if 0 < len(text) < 60]
    mixed = ["".join(draw.choices(pieces, k=draw.randint(2, 5))) for _ in range(60)]
    drawn = ["".join(chr(draw.choice([draw.randint(32, 126), draw.randint(0xa0, 0x36f),
                                      draw.randint(0x400, 0xd7ff), draw.randint(0x10000, 0x1ffff)]))
                     for _ in range(draw.randint(1, 8))) for _ in range(60)]
    return TEXTS + mixed + drawn


def learn():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS, min_frequency=2, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<padding>", "<unknown>", "<begin>", "<end>"])
    tokenizer.train([str(HERE / "train.txt")], trainer)
    return tokenizer


def split(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def special(text, **keys):
    return AddedToken(text, special=True, **{"normalized": False, **keys})


def main():
    HERE.mkdir(exist_ok=True)
    draw = random.Random(0)
    lines = LINES.splitlines(keepends=True)
    words = [word for line in lines for word in line.split()]
    extra = [" ".join(draw.choices(words, k=draw.randint(3, 12))) + "\n" for _ in range(30)]
    (HERE / "train.txt").write_bytes("".join(lines + extra).encode())
    learnt = learn()
    model = json.loads(learnt.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False)
    prefixed = pre_tokenizers.ByteLevel(add_prefix_space=True)
    kinds = {  # name: (pre-tokeniser, added tokens, normaliser, ignore_merges)
        "gpt2": (plain, [special("<|end|>")], None, False),
        "roberta": (prefixed, [special("<s>", normalized=True), special("</s>", normalized=True),
                               special("<mask>", lstrip=True), AddedToken("  ", normalized=True),
                               AddedToken("xx", rstrip=True), AddedToken(" x")], None, False),
        "llama3": (split(PATTERNS["llama3"]), [special("<|end|>"), special("<|endless|>")], None,
                   True),
        "qwen": (split(PATTERNS["qwen"]),
                 [special("<|im_start|>"), special("<|im_end|>", rstrip=True)], normalizers.NFC(),
                 False),
        "o200k": (split(PATTERNS["o200k"]), [], None, True),
    }
    texts = make_texts()
    found = {"texts": texts}
    write(learnt, "learnt")
    for name, (pre, added, normalizer, whole) in kinds.items():
        tokenizer = Tokenizer(models.BPE(model["vocab"], merges, ignore_merges=whole))
        tokenizer.pre_tokenizer = pre
        if normalizer:
            tokenizer.normalizer = normalizer
        for token in added:
            tokenizer.add_tokens([token])
        write(tokenizer, name)
        found[name] = [tokenizer.encode(text, add_special_tokens=False).ids
                       if not normalizer or unicodedata.is_normalized("NFC", text) else None
                       for text in texts]
    (HERE / "cases.json").write_text(json.dumps(found, separators=(",", ":")).replace("],", "],\n")
                                     + "\n")


def write(tokenizer, name):
    """In the older form, with merges as texts, for half of them."""
    value = json.loads(tokenizer.to_str())
    if name in ("gpt2", "llama3"):
        value["model"]["merges"] = [" ".join(merge) for merge in value["model"]["merges"]]
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
