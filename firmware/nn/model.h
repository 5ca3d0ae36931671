/* A model file as a list of layers with shapes, parameters and costs. It uses no device, so the
 * planner, the memory plan and the shape tests can use it. */
#ifndef RP_NN_MODEL_H
#define RP_NN_MODEL_H

#include "nn/layer.h"

enum { RP_MODEL_LAYERS_MAX = 4096, RP_MODEL_TIMES_MAX = 8 };

/* The shapes of a model for samples with one number of tokens. */
typedef struct {
    uint32_t time; /* tokens of a sample, or of each input of a sample; 0: as planned */
    rp_shape input;
    const rp_layer_plan *plan;
    const rp_shape (*in)[RP_LAYER_INPUTS_MAX];
} rp_model_view;

typedef struct {
    const char *name; /* "conv1.weight", or what `names` of the layer says */
    uint32_t layer;
    uint32_t index; /* in the layer's plan->param */
    /* The first parameter with this name: itself, except for later uses of a tied tensor. Its rule
     * gives the initial values, and it is the one in files and counts. */
    uint32_t owner;
    bool tied; /* other layers have a parameter with this name */
    rp_param_role role;
    rp_shape shape; /* in weights files: that of the layer, but for dimensions of 1 that `names`
                       adds or leaves out */
    size_t count;   /* elements */
} rp_model_param;

typedef struct {
    rp_shape input;      /* of one sample; several inputs are concatenated along axis 0 */
    rp_dtype input_type; /* f32, or i32 for token ids */
    /* Number of inputs if there are several, else 0. The first layers are then slices of the data,
     * one for each input and with its name. */
    uint32_t input_count;
    /* `onnx`: names in the ONNX model that the model came from, by input; NULL: the file has none
     */
    const char **onnx_input;
    const char *onnx_output;
    uint32_t classes; /* meaning of `out: classes`, 0 = not known */
    uint32_t layer_count;
    rp_layer *layer;
    rp_layer_plan *plan;
    rp_shape (*in)[RP_LAYER_INPUTS_MAX]; /* sample shapes of each layer's inputs */
    /* Shapes for steps with fewer tokens than planned, ascending (model_times.c). */
    rp_model_view *view;
    uint32_t view_count;
    uint32_t param_count;
    /* Layer by layer, in the order of the plans. A tied tensor is in the list once for each use,
     * because each use has a copy of it (names.h). */
    rp_model_param *param;
    /* by layer: its output needs a gradient, because it or a layer that it reads from is trained */
    bool *wants_grad;
    /* [layer_count + 1]: those of layer i are [param_first[i], param_first[i + 1]) */
    uint32_t *param_first;
    struct rp_model_workspaces *workspaces; /* what workspace.c found, also for a const model */
} rp_model;

/* Parses a model file's tree, strictly. The model is allocated in `arena` and borrows from the
 * tree. `input: {source: {shape: [40], type: i32}, target: ...}` states several inputs of one type,
 * which differ only in their first dimension. A sample concatenates them along axis 0, and layers
 * read them by name. If the data follow the model, the file must state `input`; a stated input must
 * have as many elements as the data, of the same type.
 *
 * errors  USAGE with file and line; SHAPE naming the layer, its line and the numbers. A layer that
 *         no later layer reads is an error, except the last one, whose output is the model's. */
rp_err rp_model_parse(rp_arena *arena, rp_node *root, const rp_model_data *data,
                      rp_model **out) RP_MUST_CHECK;

/* Whether the key `input` of a model file, which may be NULL, states several inputs by name. */
bool rp_model_names_inputs(const rp_node *input);
/* Reads such a key, `{source: {shape: [40], type: i32}, target: {shape: [40], type: i32}}`, into
 * input, input_type and input_count of a zeroed model; size[i] is the first size of input i.
 * errors  USAGE naming file, line and key */
rp_err rp_model_read_inputs(rp_node *input, rp_model *model,
                            uint32_t size[RP_LAYER_INPUTS_MAX]) RP_MUST_CHECK;

/* Type of the output of `layer`, or of the model's input for RP_LAYER_DATA. */
rp_dtype rp_model_type(const rp_model *model, uint32_t layer);
/* Ids of the model's input must be below it, because a layer looks them up; 0: any are valid. */
uint32_t rp_model_id_count(const rp_model *model);
/* The limit of each element of the input, 0 where any id is valid: *out is [elements], or NULL if
 * any ids are valid everywhere. errors MEMORY */
rp_err rp_model_id_limits(rp_arena *arena, const rp_model *model, uint32_t **out) RP_MUST_CHECK;

/* Tokens of a sample, or of each of several inputs, as planned; 0: samples are not token ids, or
 * the inputs have different lengths. */
uint32_t rp_model_time(const rp_model *model);
/* Adds views for steps of `time` tokens, which ascend and are below rp_model_time(). A view uses
 * the memory, weights and kernels of the planned length. Plans must not change afterwards.
 * errors  SHAPE: samples are not token ids, or naming a layer that needs the planned length; MEMORY
 */
rp_err rp_model_add_times(rp_arena *arena, rp_model *model, const uint32_t *time,
                          uint32_t count) RP_MUST_CHECK;
/* Whether steps may have `time` tokens: 0, or that of a view. */
bool rp_model_has_time(const rp_model *model, uint32_t time);
/* The shapes for steps of `time` tokens, which rp_model_has_time(). */
rp_model_view rp_model_view_at(const rp_model *model, uint32_t time);
/* One sample of the output of `layer`, or of the model's input for RP_LAYER_DATA. */
const rp_shape *rp_model_view_shape(const rp_model_view *view, uint32_t layer);

/* Index of a layer; layer_count if the name is unknown. */
uint32_t rp_model_find(const rp_model *model, const char *name);
/* Like rp_model_find(), but fast if the layer is the next one after `before` (ordered lists). */
uint32_t rp_model_find_behind(const rp_model *model, uint32_t before, const char *name);

/* One sample of the output of `layer`, or of the model's input for RP_LAYER_DATA. */
const rp_shape *rp_model_shape(const rp_model *model, uint32_t layer);
const rp_shape *rp_model_out(const rp_model *model);

/* Number of inputs of the layers [first, end) that read the output of `producer` (or
 * RP_LAYER_DATA). */
uint32_t rp_model_readers(const rp_model *model, uint32_t producer, uint32_t first, uint32_t end);

/* Number of elements of all parameters of one role in the layers [first, end); a tied tensor
 * counts once for each use, as in memory. */
size_t rp_model_param_count(const rp_model *model, rp_param_role role, uint32_t first,
                            uint32_t end);

/* Whether the file gives names to parameters. */
bool rp_model_has_names(const rp_model *model);
/* Number of parameters that share their tensor with another layer. */
uint32_t rp_model_tied_count(const rp_model *model);
/* Number of elements of all tensors of one role; a tied tensor counts once. */
size_t rp_model_tensor_count(const rp_model *model, rp_param_role role);

/* Whether a parameter of the layers [first, end) has a use elsewhere. */
bool rp_model_crosses(const rp_model *model, uint32_t param, uint32_t first, uint32_t end);

/* For one sample through the layers [first, end). */
double rp_model_flops_forward(const rp_model *model, uint32_t first, uint32_t end);
double rp_model_flops_backward(const rp_model *model, uint32_t first, uint32_t end);

/* Writes the initial values of a parameter, model->param[param].count floats, from the stream
 * "init/<layer>/<suffix>" of its owner, so that they do not depend on the cut.
 *
 * source  PyTorch's default rules: Linear and Conv2d draw weight and bias from U(-b, b), b = 1 /
 *         sqrt(fan in) (kaiming_uniform_ with a = sqrt(5)); BatchNorm starts with 1 and 0;
 *         Embedding draws from N(0, 1), here by Box and Muller's method */
void rp_model_init_param(const rp_model *model, uint32_t param, uint64_t seed, float *out);

#endif
