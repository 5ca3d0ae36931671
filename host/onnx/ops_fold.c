/* Operators with constant inputs, as exporters use them to compute shapes and masks. */
#include <math.h>
#include <string.h>

#include "onnx/constants.h"
#include "onnx/ops.h"
#include "onnx/tensor.h"

static bool is_op(const rp_onnx_visit *visit, const char *name) {
    return strcmp(visit->node->op, name) == 0;
}

/* ---- two inputs ------------------------------------------------------------------------------ */

typedef enum {
    ADD,
    SUB,
    MUL,
    DIV,
    MOD,
    POW,
    MIN,
    MAX,
    EQUAL,
    LESS,
    GREATER,
    LESS_OR_EQUAL,
    GREATER_OR_EQUAL,
    AND,
    OR,
    BINARY_COUNT
} binary;

static const char *const binary_names[] = {"Add",
                                           "Sub",
                                           "Mul",
                                           "Div",
                                           "Mod",
                                           "Pow",
                                           "Min",
                                           "Max",
                                           "Equal",
                                           "Less",
                                           "Greater",
                                           "LessOrEqual",
                                           "GreaterOrEqual",
                                           "And",
                                           "Or"};

/* Python's sign: that of the divisor. */
static int64_t modulo(int64_t a, int64_t b) {
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t power(int64_t a, int64_t b) {
    const double value = pow((double)a, (double)b);
    return fabs(value) < 9e18 ? (int64_t)value : 0;
}

/* Sums and products wrap, as in other evaluators. */
static int64_t of_ints(binary op, int64_t a, int64_t b) {
    const bool divides = b != 0 && !(b == -1 && a == INT64_MIN);
    switch (op) {
    case ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case SUB:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case DIV:
        return divides ? a / b : 0;
    case MOD:
        return divides ? modulo(a, b) : 0;
    case POW:
        return power(a, b);
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a > b ? a : b;
    case EQUAL:
        return a == b;
    case LESS:
        return a < b;
    case GREATER:
        return a > b;
    case LESS_OR_EQUAL:
        return a <= b;
    case GREATER_OR_EQUAL:
        return a >= b;
    case AND:
        return a && b;
    default:
        return a || b;
    }
}

static float of_floats(binary op, float a, float b) {
    switch (op) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case MUL:
        return a * b;
    case DIV:
        return a / b;
    case MOD:
        return fmodf(a, b);
    case POW:
        return powf(a, b);
    case MIN:
        return a < b ? a : b;
    default:
        return a > b ? a : b;
    }
}

static int64_t compare(binary op, float a, float b) {
    return op == EQUAL           ? a == b
           : op == LESS          ? a < b
           : op == GREATER       ? a > b
           : op == LESS_OR_EQUAL ? a <= b
                                 : a >= b;
}

/* Both inputs in the common shape; *done is false if they have no common shape. */
static rp_err spread_inputs(const rp_onnx_visit *visit, uint32_t first, const rp_onnx_view **a,
                            const rp_onnx_view **b, bool *done) {
    const rp_onnx_value *x = rp_onnx_in(visit, first);
    const rp_onnx_value *y = rp_onnx_in(visit, first + 1);
    rp_onnx_dims dims;
    rp_err err = RP_OK;
    *done = false;
    if (!x || !y || !rp_onnx_dims_broadcast(&x->view->dims, &y->view->dims, &dims)) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_view_expand(visit->graph->arena, x->view, &dims, a));
    RP_TRY(rp_onnx_view_expand(visit->graph->arena, y->view, &dims, b));
    *done = *a && *b;
fail:
    return err;
}

rp_err rp_onnx_fold_binary(const rp_onnx_visit *visit, bool *done) {
    rp_onnx_graph *graph = visit->graph;
    const bool whole = rp_onnx_in(visit, 0)->whole;
    const rp_onnx_view *a = NULL;
    const rp_onnx_view *b = NULL;
    binary op = ADD;
    int64_t *ints;
    float *floats;
    rp_err err;
    while (op < BINARY_COUNT && !is_op(visit, binary_names[op])) {
        op++;
    }
    const bool whole_out = whole || op >= EQUAL;
    RP_TRY(spread_inputs(visit, 0, &a, &b, done));
    *done = *done && whole == rp_onnx_in(visit, 1)->whole && visit->node->input_count == 2;
    if (!*done) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_new_const(graph, whole_out, a->dims.count, &ints, &floats));
    *done = ints || floats;
    for (uint64_t i = 0; *done && i < a->dims.count; i++) {
        if (whole) {
            ints[i] = of_ints(op, rp_onnx_int_of(graph, a, i), rp_onnx_int_of(graph, b, i));
        } else if (whole_out) {
            ints[i] = compare(op, rp_onnx_float_of(graph, a, i), rp_onnx_float_of(graph, b, i));
        } else {
            floats[i] = of_floats(op, rp_onnx_float_of(graph, a, i), rp_onnx_float_of(graph, b, i));
        }
    }
    if (*done) {
        RP_TRY(rp_onnx_give_const(visit, 0, whole_out, &a->dims, ints, floats));
    }
fail:
    return err;
}

rp_err rp_onnx_fold_where(const rp_onnx_visit *visit, bool *done) {
    rp_onnx_graph *graph = visit->graph;
    const rp_onnx_value *condition = rp_onnx_in(visit, 0);
    const rp_onnx_view *a = NULL;
    const rp_onnx_view *b = NULL;
    const rp_onnx_view *c = NULL;
    rp_onnx_dims dims;
    int64_t *ints;
    float *floats;
    rp_err err;
    RP_TRY(spread_inputs(visit, 1, &a, &b, done));
    *done = *done && condition->whole &&
            rp_onnx_in(visit, 1)->whole == rp_onnx_in(visit, 2)->whole &&
            rp_onnx_dims_broadcast(&condition->view->dims, &a->dims, &dims);
    if (!*done) {
        return RP_OK;
    }
    const bool whole = rp_onnx_in(visit, 1)->whole;
    RP_TRY(rp_onnx_view_expand(graph->arena, condition->view, &dims, &c));
    RP_TRY(rp_onnx_view_expand(graph->arena, a, &dims, &a));
    RP_TRY(rp_onnx_view_expand(graph->arena, b, &dims, &b));
    RP_TRY(rp_onnx_new_const(graph, whole, dims.count, &ints, &floats));
    *done = a && b && c && (ints || floats);
    for (uint64_t i = 0; *done && i < dims.count; i++) {
        const rp_onnx_view *from = rp_onnx_int_of(graph, c, i) ? a : b;
        if (whole) {
            ints[i] = rp_onnx_int_of(graph, from, i);
        } else {
            floats[i] = rp_onnx_float_of(graph, from, i);
        }
    }
    if (*done) {
        RP_TRY(rp_onnx_give_const(visit, 0, whole, &dims, ints, floats));
    }
fail:
    return err;
}

/* ---- one input ------------------------------------------------------------------------------- */

static bool unary_of(const char *op, float x, float *y) {
    static const struct {
        const char *name;
        float (*function)(float);
    } functions[] = {{"Sqrt", sqrtf}, {"Exp", expf},     {"Log", logf}, {"Abs", fabsf},
                     {"Sin", sinf},   {"Cos", cosf},     {"Erf", erff}, {"Tanh", tanhf},
                     {"Ceil", ceilf}, {"Floor", floorf}, {NULL, NULL}};
    for (uint32_t i = 0; functions[i].name; i++) {
        if (strcmp(op, functions[i].name) == 0) {
            *y = functions[i].function(x);
            return true;
        }
    }
    *y = strcmp(op, "Reciprocal") == 0 ? 1.0f / x : -x;
    return strcmp(op, "Reciprocal") == 0 || strcmp(op, "Neg") == 0;
}

rp_err rp_onnx_fold_unary(const rp_onnx_visit *visit, bool *done) {
    rp_onnx_graph *graph = visit->graph;
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const uint64_t count = in->view->dims.count;
    int64_t *ints;
    float *floats;
    rp_err err;
    RP_TRY(rp_onnx_new_const(graph, in->whole, count, &ints, &floats));
    *done = ints || floats;
    for (uint64_t i = 0; *done && i < count; i++) {
        if (!in->whole) {
            *done = unary_of(visit->node->op, in->floats[i], &floats[i]);
        } else if (is_op(visit, "Not")) {
            ints[i] = !in->ints[i];
        } else {
            ints[i] = is_op(visit, "Neg") || in->ints[i] < 0 ? (int64_t) - (uint64_t)in->ints[i]
                                                             : in->ints[i];
            *done = is_op(visit, "Neg") || is_op(visit, "Abs");
        }
    }
    if (*done) {
        RP_TRY(rp_onnx_give_const(visit, 0, in->whole, &in->view->dims, ints, floats));
    }
fail:
    return err;
}

/* Converts to an element type of ONNX. */
static rp_err convert(const rp_onnx_visit *visit, int32_t type, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const bool whole = rp_onnx_type_is_whole(type);
    const uint64_t count = in->view->dims.count;
    int64_t *ints;
    float *floats;
    rp_err err;
    *done = false;
    if (!whole && !rp_onnx_type_is_float(type)) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_new_const(visit->graph, whole, count, &ints, &floats));
    *done = ints || floats;
    for (uint64_t i = 0; *done && i < count; i++) {
        const float number = in->whole ? (float)in->ints[i] : in->floats[i];
        if (!whole) {
            floats[i] = number;
        } else if (in->whole) {
            ints[i] = type == RP_ONNX_BOOL ? in->ints[i] != 0 : in->ints[i];
        } else if (type == RP_ONNX_BOOL) {
            ints[i] = number != 0.0f;
        } else {
            ints[i] = fabsf(number) < 9e18f ? (int64_t)number : 0;
        }
    }
    if (*done) {
        RP_TRY(rp_onnx_give_const(visit, 0, whole, &in->view->dims, ints, floats));
    }
fail:
    return err;
}

rp_err rp_onnx_fold_cast(const rp_onnx_visit *visit, bool *done) {
    const bool like = is_op(visit, "CastLike");
    const rp_onnx_value *other = rp_onnx_in(visit, 1);
    const int64_t to = like ? (other && other->whole ? RP_ONNX_INT64 : RP_ONNX_FLOAT)
                            : rp_onnx_int(visit->node, "to", 0);
    return convert(visit, to > 0 && to <= INT32_MAX ? (int32_t)to : 0, done);
}

/* Keeps one triangle of the last two axes. */
rp_err rp_onnx_fold_trilu(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const rp_onnx_dims *dims = &in->view->dims;
    const bool upper = rp_onnx_int(visit->node, "upper", 1) != 0;
    float shift = 0.0f;
    int64_t *ints;
    float *floats;
    rp_err err;
    *done = dims->rank >= 2 && (!rp_onnx_in(visit, 1) || rp_onnx_const_number(visit, 1, &shift));
    if (!*done || fabsf(shift) > 1e9f) {
        *done = false;
        return RP_OK;
    }
    RP_TRY(rp_onnx_new_const(visit->graph, in->whole, dims->count, &ints, &floats));
    *done = ints || floats;
    for (uint64_t i = 0; *done && i < dims->count; i++) {
        const int64_t column = (int64_t)(i % (uint64_t)dims->dim[dims->rank - 1]);
        const int64_t row = (int64_t)(i / (uint64_t)dims->dim[dims->rank - 1] %
                                      (uint64_t)dims->dim[dims->rank - 2]);
        const int64_t above = column - row - (int64_t)shift;
        const bool keep = upper ? above >= 0 : above <= 0;
        if (in->whole) {
            ints[i] = keep ? in->ints[i] : 0;
        } else {
            floats[i] = keep ? in->floats[i] : 0.0f;
        }
    }
    if (*done) {
        RP_TRY(rp_onnx_give_const(visit, 0, in->whole, dims, ints, floats));
    }
fail:
    return err;
}

/* ---- no input, or only sizes ----------------------------------------------------------------- */

static rp_err give_tensor(const rp_onnx_visit *visit, const rp_onnx_tensor *tensor,
                          const rp_onnx_dims *dims, bool repeat, bool *done) {
    const bool whole = rp_onnx_type_is_whole(tensor->type);
    int64_t *ints;
    float *floats;
    rp_err err;
    *done = false;
    if (!tensor->data) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_new_const(visit->graph, whole, dims->count, &ints, &floats));
    *done = ints || floats;
    for (uint64_t i = 0; *done && i < dims->count; i++) {
        if (whole) {
            ints[i] = rp_onnx_whole_at(tensor, repeat ? 0 : i);
        } else {
            floats[i] = rp_onnx_float_at(tensor, repeat ? 0 : i);
        }
    }
    if (*done) {
        RP_TRY(rp_onnx_give_const(visit, 0, whole, dims, ints, floats));
    }
fail:
    return err;
}

rp_err rp_onnx_fold_constant(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_node *node = visit->node;
    const rp_onnx_attribute *value = node->attribute_count > 0 ? &node->attribute[0] : NULL;
    rp_onnx_dims dims = {.count = 1};
    *done = false;
    if (!value) {
        return RP_OK;
    }
    if (value->tensor && rp_onnx_dims_of(value->tensor->rank, value->tensor->dim, &dims)) {
        return give_tensor(visit, value->tensor, &dims, false, done);
    }
    *done = true;
    if (strcmp(value->name, "value_int") == 0) {
        return rp_onnx_give_const(visit, 0, true, &dims, &value->i, NULL);
    }
    if (strcmp(value->name, "value_float") == 0) {
        return rp_onnx_give_const(visit, 0, false, &dims, NULL, &value->f);
    }
    if (strcmp(value->name, "value_ints") == 0) {
        dims = (rp_onnx_dims){.rank = 1, .dim = {value->int_count}, .count = value->int_count};
        return rp_onnx_give_const(visit, 0, true, &dims, value->ints, NULL);
    }
    if (strcmp(value->name, "value_floats") == 0) {
        dims = (rp_onnx_dims){.rank = 1, .dim = {value->float_count}, .count = value->float_count};
        return rp_onnx_give_const(visit, 0, false, &dims, NULL, value->floats);
    }
    *done = false;
    return RP_OK;
}

rp_err rp_onnx_fold_constant_of_shape(const rp_onnx_visit *visit, bool *done) {
    static const uint8_t zero[sizeof(float)] = {0};
    static const rp_onnx_tensor usual = {
        .name = "", .type = RP_ONNX_FLOAT, .count = 1, .data = zero};
    const rp_onnx_attribute *value = rp_onnx_find(visit->node, "value");
    const rp_onnx_tensor *tensor = value ? value->tensor : &usual;
    const int64_t *shape;
    uint64_t rank;
    rp_onnx_dims dims;
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_const_ints(visit, 0, &shape, &rank));
    if (shape && tensor && tensor->count == 1 && rank <= RP_ONNX_RANK_MAX &&
        rp_onnx_dims_of((uint32_t)rank, shape, &dims)) {
        RP_TRY(give_tensor(visit, tensor, &dims, true, done));
    }
fail:
    return err;
}

rp_err rp_onnx_fold_range(const rp_onnx_visit *visit, bool *done) {
    const bool whole = rp_onnx_in(visit, 0)->whole;
    float number[3];
    int64_t *ints;
    float *floats;
    rp_err err;
    *done = true;
    for (uint32_t i = 0; i < 3; i++) {
        *done = *done && rp_onnx_const_number(visit, i, &number[i]) &&
                rp_onnx_in(visit, i)->whole == whole;
    }
    const double count =
        *done && number[2] != 0.0f ? ceil(((double)number[1] - number[0]) / number[2]) : 0.0;
    if (!*done || !(count >= 1.0 && count <= RP_ONNX_CONST_MAX)) {
        *done = false;
        return RP_OK;
    }
    const rp_onnx_dims dims = {.rank = 1, .dim = {(int64_t)count}, .count = (uint64_t)count};
    RP_TRY(rp_onnx_new_const(visit->graph, whole, dims.count, &ints, &floats));
    *done = ints || floats;
    for (uint64_t i = 0; *done && i < dims.count; i++) {
        if (whole) {
            ints[i] = (int64_t)((uint64_t)rp_onnx_in(visit, 0)->ints[0] +
                                (uint64_t)rp_onnx_in(visit, 2)->ints[0] * i);
        } else {
            floats[i] = number[0] + number[2] * (float)i;
        }
    }
    if (*done) {
        RP_TRY(rp_onnx_give_const(visit, 0, whole, &dims, ints, floats));
    }
fail:
    return err;
}

rp_err rp_onnx_fold_gather(const rp_onnx_visit *visit, bool *done) {
    rp_onnx_graph *graph = visit->graph;
    const rp_onnx_value *data = rp_onnx_in(visit, 0);
    const rp_onnx_value *index = rp_onnx_in(visit, 1);
    const rp_onnx_dims *from = &data->view->dims;
    const rp_onnx_dims *at = &index->view->dims;
    int64_t axis = rp_onnx_int(visit->node, "axis", 0);
    int64_t dim[2 * RP_ONNX_RANK_MAX];
    uint64_t inner = 1;
    rp_onnx_dims dims;
    int64_t *ints;
    float *floats;
    rp_err err = RP_OK;
    axis += axis < 0 ? from->rank : 0;
    *done = false;
    if (axis < 0 || axis >= from->rank || !index->whole ||
        from->rank - 1 + at->rank > RP_ONNX_RANK_MAX) {
        return RP_OK;
    }
    uint32_t rank = 0;
    for (uint32_t i = 0; i < from->rank; i++) {
        for (uint32_t k = 0; i == axis && k < at->rank; k++) {
            dim[rank++] = at->dim[k];
        }
        if (i != axis) {
            dim[rank++] = from->dim[i];
        }
        inner *= i > axis ? (uint64_t)from->dim[i] : 1;
    }
    if (!rp_onnx_dims_of(rank, dim, &dims)) {
        return RP_OK;
    }
    RP_TRY(rp_onnx_new_const(graph, data->whole, dims.count, &ints, &floats));
    *done = ints || floats;
    for (uint64_t i = 0; *done && i < dims.count; i++) {
        const uint64_t row = i / inner;
        int64_t k = index->ints[row % at->count];
        k += k < 0 ? from->dim[axis] : 0;
        if (k < 0 || k >= from->dim[axis]) {
            *done = false;
            return RP_OK;
        }
        const uint64_t source =
            (row / at->count * (uint64_t)from->dim[axis] + (uint64_t)k) * inner + i % inner;
        if (data->whole) {
            ints[i] = data->ints[source];
        } else {
            floats[i] = data->floats[source];
        }
    }
    if (*done) {
        RP_TRY(rp_onnx_give_const(visit, 0, data->whole, &dims, ints, floats));
    }
fail:
    return err;
}

/* Running sums along one axis. */
rp_err rp_onnx_fold_cumsum(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *in = rp_onnx_in(visit, 0);
    const rp_onnx_dims *dims = &in->view->dims;
    const int64_t *axis;
    uint64_t count;
    uint64_t inner = 1;
    int64_t *ints;
    float *floats;
    rp_err err;
    *done = false;
    RP_TRY(rp_onnx_const_ints(visit, 1, &axis, &count));
    const int64_t at = count == 1 ? axis[0] + (axis[0] < 0 ? dims->rank : 0) : -1;
    if (at < 0 || at >= dims->rank || rp_onnx_int(visit->node, "exclusive", 0) != 0 ||
        rp_onnx_int(visit->node, "reverse", 0) != 0) {
        return RP_OK;
    }
    for (uint32_t i = (uint32_t)at + 1; i < dims->rank; i++) {
        inner *= (uint64_t)dims->dim[i];
    }
    RP_TRY(rp_onnx_new_const(visit->graph, in->whole, dims->count, &ints, &floats));
    *done = ints || floats;
    for (uint64_t i = 0; *done && i < dims->count; i++) {
        const bool first = i / inner % (uint64_t)dims->dim[at] == 0;
        if (in->whole) {
            ints[i] = (int64_t)((uint64_t)in->ints[i] + (first ? 0 : (uint64_t)ints[i - inner]));
        } else {
            floats[i] = in->floats[i] + (first ? 0.0f : floats[i - inner]);
        }
    }
    if (*done) {
        RP_TRY(rp_onnx_give_const(visit, 0, in->whole, dims, ints, floats));
    }
fail:
    return err;
}

/* The element of a factor [.., rows, columns] with this row and column, in the matrix that `matrix`
 * of the product reads by NumPy's rule. */
static float factor_at(const rp_onnx_value *value, const rp_onnx_dims *out, uint64_t matrix,
                       int64_t row, int64_t column) {
    const rp_onnx_dims *dims = &value->view->dims;
    const int64_t columns = dims->dim[dims->rank - 1];
    const int64_t rows = dims->dim[dims->rank - 2];
    uint64_t at = 0;
    uint64_t stride = (uint64_t)(rows * columns);
    for (uint32_t i = 2; i < out->rank; i++) {
        const uint64_t size = (uint64_t)out->dim[out->rank - 1 - i];
        if (i < dims->rank) {
            const uint64_t own = (uint64_t)dims->dim[dims->rank - 1 - i];
            at += (own == 1 ? 0 : matrix % size) * stride;
            stride *= own;
        }
        matrix /= size;
    }
    return value->floats[at + (uint64_t)(row * columns + column)];
}

rp_err rp_onnx_fold_matmul(const rp_onnx_visit *visit, bool *done) {
    const rp_onnx_value *a = rp_onnx_in(visit, 0);
    const rp_onnx_value *b = rp_onnx_in(visit, 1);
    const rp_onnx_dims *x = &a->view->dims;
    const rp_onnx_dims *y = &b->view->dims;
    rp_onnx_dims left = *x;
    rp_onnx_dims right = *y;
    rp_onnx_dims dims;
    int64_t *ints;
    float *floats;
    rp_err err;
    *done = false;
    if (a->whole || b->whole || x->rank < 2 || y->rank < 2 || x->count == 0 || y->count == 0 ||
        x->dim[x->rank - 1] != y->dim[y->rank - 2]) {
        return RP_OK;
    }
    const int64_t inner = x->dim[x->rank - 1];
    left.dim[x->rank - 1] = 1;
    right.dim[y->rank - 2] = 1;
    if (!rp_onnx_dims_broadcast(&left, &right, &dims) ||
        dims.count > visit->graph->budget / (uint64_t)inner) {
        return RP_OK;
    }
    visit->graph->budget -= dims.count * (uint64_t)inner;
    RP_TRY(rp_onnx_new_const(visit->graph, false, dims.count, &ints, &floats));
    *done = floats != NULL;
    for (uint64_t i = 0; *done && i < dims.count; i++) {
        const int64_t column = (int64_t)(i % (uint64_t)dims.dim[dims.rank - 1]);
        const uint64_t above = i / (uint64_t)dims.dim[dims.rank - 1];
        const int64_t row = (int64_t)(above % (uint64_t)dims.dim[dims.rank - 2]);
        const uint64_t matrix = above / (uint64_t)dims.dim[dims.rank - 2];
        double sum = 0.0;
        for (int64_t k = 0; k < inner; k++) {
            sum += (double)factor_at(a, &dims, matrix, row, k) *
                   (double)factor_at(b, &dims, matrix, k, column);
        }
        floats[i] = (float)sum;
    }
    if (*done) {
        RP_TRY(rp_onnx_give_const(visit, 0, false, &dims, NULL, floats));
    }
fail:
    return err;
}
