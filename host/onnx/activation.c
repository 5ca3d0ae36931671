#include "onnx/activation.h"

#include <math.h>
#include <string.h>

#include "onnx/layers.h"
#include "onnx/ops.h"
#include "onnx/rows.h"

enum { DEPTH_MAX = 12, STEPS_MAX = 200, CANDIDATES_MAX = 16 };

/* An evaluation of the formula with a number for one value. */
typedef struct {
    rp_onnx_graph *graph;
    const rp_onnx_view *x; /* the value */
    double number;
    uint32_t steps; /* nodes that were evaluated */
    bool good;
} formula;

/* ---- known activations ----------------------------------------------------------------------- */

static double sigmoid_of(double x) {
    return 1.0 / (1.0 + exp(-x));
}

static double softplus_of(double x) {
    return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double gelu(double x) {
    return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
}

static double gelu_tanh(double x) {
    return 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static double silu(double x) {
    return x * sigmoid_of(x);
}

static double mish(double x) {
    return x * tanh(softplus_of(x));
}

static double hardsigmoid(double x) {
    return fmin(fmax(x / 6.0 + 0.5, 0.0), 1.0);
}

static double hardswish(double x) {
    return x * hardsigmoid(x);
}

static double relu6(double x) {
    return fmin(fmax(x, 0.0), 6.0);
}

static const struct {
    const char *kind, *keys;
    double (*function)(double);
} activations[] = {
    {"gelu", "", gelu},           {"gelu", "approximate: tanh", gelu_tanh},
    {"silu", "", silu},           {"mish", "", mish},
    {"hardswish", "", hardswish}, {"hardsigmoid", "", hardsigmoid},
    {"relu6", "", relu6},         {"softplus", "", softplus_of},
    {"sigmoid", "", sigmoid_of},  {"tanh", "", tanh},
};

/* ---- the formula ----------------------------------------------------------------------------- */

static double value_of(formula *f, uint32_t value, uint32_t depth);

/* Input `i` of a node; `usual` where it is absent. */
static double input_of(formula *f, const rp_onnx_visit *visit, uint32_t i, double usual,
                       uint32_t depth) {
    const rp_onnx_value *in = rp_onnx_in(visit, i);
    return in ? value_of(f, visit->node->input[i], depth) : usual;
}

static double unary(const rp_onnx_node *node, double a, bool *known) {
    static const struct {
        const char *name;
        double (*function)(double);
    } table[] = {{"Erf", erf},
                 {"Tanh", tanh},
                 {"Sigmoid", sigmoid_of},
                 {"Sqrt", sqrt},
                 {"Exp", exp},
                 {"Log", log},
                 {"Abs", fabs},
                 {"Mish", mish},
                 {"Softplus", softplus_of},
                 {"HardSwish", hardswish}};
    const float alpha = rp_onnx_float(node, "alpha", 0.2f);
    const float beta = rp_onnx_float(node, "beta", 0.5f);
    *known = true;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(node->op, table[i].name) == 0) {
            return table[i].function(a);
        }
    }
    if (strcmp(node->op, "Relu") == 0) {
        return fmax(a, 0.0);
    }
    if (strcmp(node->op, "Neg") == 0) {
        return -a;
    }
    if (strcmp(node->op, "Reciprocal") == 0) {
        return 1.0 / a;
    }
    if (strcmp(node->op, "HardSigmoid") == 0) {
        return fmin(fmax((double)alpha * a + (double)beta, 0.0), 1.0);
    }
    *known = strcmp(node->op, "Identity") == 0;
    return a;
}

static double binary(const char *op, double a, double b, bool *known) {
    *known = true;
    if (strcmp(op, "Add") == 0) {
        return a + b;
    }
    if (strcmp(op, "Sub") == 0) {
        return a - b;
    }
    if (strcmp(op, "Mul") == 0) {
        return a * b;
    }
    if (strcmp(op, "Div") == 0) {
        return a / b;
    }
    if (strcmp(op, "Pow") == 0) {
        return pow(a, b);
    }
    if (strcmp(op, "Min") == 0) {
        return fmin(a, b);
    }
    *known = strcmp(op, "Max") == 0;
    return fmax(a, b);
}

static double node_of(formula *f, uint32_t index, uint32_t depth) {
    const rp_onnx_visit visit = {
        .graph = f->graph, .node = &f->graph->model->node[index], .index = index};
    const uint32_t inputs = visit.node->input_count;
    bool known = false;
    double result = 0.0;
    if (!rp_onnx_is_standard(visit.node)) {
        f->good = false;
        return 0.0;
    }
    if (strcmp(visit.node->op, "Clip") == 0 && inputs <= 3) {
        const double least = input_of(f, &visit, 1, -INFINITY, depth);
        const double most = input_of(f, &visit, 2, INFINITY, depth);
        return fmin(fmax(input_of(f, &visit, 0, 0.0, depth), least), most);
    }
    if (inputs == 1) {
        result = unary(visit.node, input_of(f, &visit, 0, 0.0, depth), &known);
    } else if (inputs == 2) {
        result = binary(visit.node->op, input_of(f, &visit, 0, 0.0, depth),
                        input_of(f, &visit, 1, 0.0, depth), &known);
    }
    f->good &= known;
    return result;
}

static double value_of(formula *f, uint32_t value, uint32_t depth) {
    const rp_onnx_value *v = &f->graph->value[value];
    float number;
    if (!f->good || depth == 0 || f->steps++ > STEPS_MAX || !v->view) {
        f->good = false;
        return 0.0;
    }
    if (v->view == f->x) {
        return f->number;
    }
    if (rp_onnx_number_of(f->graph, v, &number)) {
        return (double)number;
    }
    if (v->state == RP_ONNX_DYNAMIC && v->node != RP_ONNX_NONE) {
        return node_of(f, v->node, depth - 1);
    }
    f->good = false;
    return 0.0;
}

static const double numbers[] = {-7.5, -3.2, -2.9, -1.0, -0.3, 0.2, 0.9, 2.8, 3.1, 6.4};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* The node's results if the value `x` is each of the numbers. False: they depend on more. */
static bool evaluate(rp_onnx_graph *graph, const rp_onnx_view *x, uint32_t node,
                     double result[NUMBERS]) {
    formula f = {.graph = graph, .x = x, .good = true};
    for (size_t i = 0; f.good && i < NUMBERS; i++) {
        f.number = numbers[i];
        f.steps = 0;
        result[i] = node_of(&f, node, DEPTH_MAX);
        f.good &= f.steps <= graph->budget;
        graph->budget -= f.good ? f.steps : 0;
    }
    return f.good;
}

static bool fits(const double result[NUMBERS], double (*function)(double)) {
    for (size_t i = 0; i < NUMBERS; i++) {
        const double wanted = function(numbers[i]);
        if (!(fabs(result[i] - wanted) <= 1e-5 * (1.0 + fabs(wanted)))) {
            return false;
        }
    }
    return true;
}

/* ---- the value ------------------------------------------------------------------------------- */

/* Dynamic values that the node depends on, nearest first. */
static uint32_t find_candidates(const rp_onnx_visit *visit, uint32_t value[CANDIDATES_MAX]) {
    const rp_onnx_graph *graph = visit->graph;
    uint32_t count = 0;
    for (uint32_t next = 0; next <= count; next++) {
        const uint32_t index = next == 0 ? visit->index : graph->value[value[next - 1]].node;
        if (index == RP_ONNX_NONE) {
            continue;
        }
        const rp_onnx_node *node = &graph->model->node[index];
        for (uint32_t i = 0; i < node->input_count && count < CANDIDATES_MAX; i++) {
            const uint32_t in = node->input[i];
            bool seen = in == RP_ONNX_NONE || graph->value[in].state != RP_ONNX_DYNAMIC ||
                        graph->value[in].whole;
            for (uint32_t k = 0; !seen && k < count; k++) {
                seen = graph->value[value[k]].view == graph->value[in].view;
            }
            if (!seen) {
                value[count++] = in;
            }
        }
        if (count == CANDIDATES_MAX) {
            break;
        }
    }
    return count;
}

rp_err rp_onnx_match_activation(const rp_onnx_visit *visit, bool *done) {
    rp_onnx_graph *graph = visit->graph;
    uint32_t candidate[CANDIDATES_MAX];
    const uint32_t count = find_candidates(visit, candidate);
    rp_onnx_layer draft;
    rp_onnx_rows rows;
    rp_err err = RP_OK;
    *done = false;
    for (uint32_t c = 0; c < count; c++) {
        const rp_onnx_view *x = graph->value[candidate[c]].view;
        double result[NUMBERS];
        const bool known = evaluate(graph, x, visit->index, result);
        for (size_t a = 0; known && a < sizeof activations / sizeof *activations; a++) {
            if (!fits(result, activations[a].function)) {
                continue;
            }
            RP_TRY(rp_onnx_read_view_rows(visit, x, &rows, done));
            if (!*done) {
                return RP_OK;
            }
            RP_TRY(rp_onnx_draft(visit, activations[a].kind, rows.from, &draft, "%s",
                                 activations[a].keys));
            return rp_onnx_emit_rows(visit, &draft, &rows, done);
        }
    }
fail:
    return err;
}
