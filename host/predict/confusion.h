/* Scores of answers: the loss, and of classes the table which class was answered for which, from
 * which accuracy, recall and precision follow. */
#ifndef RP_PREDICT_CONFUSION_H
#define RP_PREDICT_CONFUSION_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"

enum { RP_CONFUSION_TOP = 5, RP_CONFUSION_CELLS_MAX = 1 << 24 };

typedef struct {
    uint32_t classes; /* 0: the targets are values, and only the loss is known */
    uint32_t outputs; /* of the net, which may have more of them than there are classes */
    uint32_t *count; /* [classes][outputs]: row = the sample's class, column = the largest output */
    uint64_t samples, right;
    uint64_t among_top; /* the class was among the RP_CONFUSION_TOP largest outputs */
    double loss_sum;    /* cross-entropy or squared error, as the boards' kernels, in double */
} rp_confusion;

/* errors LIMIT: more than RP_CONFUSION_CELLS_MAX cells */
rp_err rp_confusion_open(rp_arena *arena, uint32_t classes, uint32_t outputs,
                         rp_confusion *out) RP_MUST_CHECK;
/* y [outputs]; `smoothing` as `label_smoothing` of the run. errors NUMERIC: an output is not
 * finite; FORMAT: no such class */
rp_err rp_confusion_add(rp_confusion *confusion, const float *y, int32_t label,
                        float smoothing) RP_MUST_CHECK;
/* For targets without classes. y, target [outputs]. errors NUMERIC: an output is not finite */
rp_err rp_confusion_add_values(rp_confusion *confusion, const float *y,
                               const float *target) RP_MUST_CHECK;

/* Samples of a class; how often a class was answered; both as sums over the table. */
uint64_t rp_confusion_samples(const rp_confusion *confusion, uint32_t class);
uint64_t rp_confusion_answered(const rp_confusion *confusion, uint32_t class);

/* What a result says besides. */
typedef struct {
    const char *split, *model, *weights, *device;
    const char *const *class_name; /* [classes], or NULL */
    bool only_score;               /* loss and accuracy, without each class and the table */
} rp_confusion_about;

/* For people: loss, and of classes accuracy, each class, and the table, or of many classes the most
 * frequent errors. */
void rp_confusion_print(const rp_confusion *confusion, const rp_confusion_about *about, FILE *file);
/* One object: `eval` as in summary.json, and top5 where there are more classes. Unless only_score
 * also `classes`, a list of {class, index, samples, right, answered, recall, precision}, null where
 * nothing was divided, and `confusion`, the table. errors FORMAT: a name is not UTF-8 */
rp_err rp_confusion_print_json(const rp_confusion *confusion, const rp_confusion_about *about,
                               FILE *file) RP_MUST_CHECK;

#endif
