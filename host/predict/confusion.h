/* Scores of answers: the loss, and for classes the confusion table, from which accuracy, recall and
 * precision follow. */
#ifndef RP_PREDICT_CONFUSION_H
#define RP_PREDICT_CONFUSION_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"

enum { RP_CONFUSION_TOP = 5, RP_CONFUSION_CELLS_MAX = 1 << 24 };

typedef struct {
    uint32_t classes; /* 0: the targets are values, and only the loss is known */
    uint32_t outputs; /* of the net; at least `classes` */
    /* [classes][outputs]: row = class of the sample, column = largest output; NULL: not counted */
    uint64_t *count;
    uint64_t samples, right; /* with several targets in a sample: targets */
    uint64_t sequences;      /* samples with several targets, counted by the caller */
    uint64_t among_top; /* samples with their class among the RP_CONFUSION_TOP largest outputs */
    double loss_sum;    /* cross-entropy or squared error as in the boards' kernels, in double */
} rp_confusion;

/* `table`: counts by class, for scores by class and the table.
 * errors LIMIT: more than RP_CONFUSION_CELLS_MAX cells */
rp_err rp_confusion_open(rp_arena *arena, uint32_t classes, uint32_t outputs, bool table,
                         rp_confusion *out) RP_MUST_CHECK;
/* Adds a sample with a class. y: [outputs]; `smoothing`: `label_smoothing` of the run. errors
 * NUMERIC: an output is not finite; FORMAT: invalid class */
rp_err rp_confusion_add(rp_confusion *confusion, const float *y, int32_t label,
                        float smoothing) RP_MUST_CHECK;
/* Adds a sample without classes. y, target: [outputs]. errors NUMERIC: an output is not finite */
rp_err rp_confusion_add_values(rp_confusion *confusion, const float *y,
                               const float *target) RP_MUST_CHECK;

/* The mean over the classes of intersection / union: targets of a class with this answer, by
 * targets of the class or with this answer. Classes that neither a target nor an answer has are
 * left out. Needs the table. */
double rp_confusion_mean_iou(const rp_confusion *confusion);
/* Number of samples of a class, and of answers with a class: sums over the table. */
uint64_t rp_confusion_samples(const rp_confusion *confusion, uint32_t class);
uint64_t rp_confusion_answered(const rp_confusion *confusion, uint32_t class);

/* Further facts in a result. */
typedef struct {
    const char *split, *model, *weights, *device;
    const char *const *class_name; /* [classes], or NULL */
    uint32_t targets;              /* of a sample: tokens of a text; 0 or 1: its class */
    double bits;                   /* for a loss of 1 (rp_data_bits()); 0: they have no meaning */
    const double *bleu;            /* of the translations; NULL: not computed */
    bool pixels;                   /* targets are pixels; the table is needed for the mean IoU */
    bool without_table;            /* the table is not printed */
} rp_confusion_about;

/* Prints text: loss; for classes accuracy, scores by class, and the table, or for many classes only
 * the most frequent errors. */
void rp_confusion_print(const rp_confusion *confusion, const rp_confusion_about *about, FILE *file);
/* Prints one JSON object: `eval` as in summary.json, with top5 if there are more than 5 classes.
 * With a table also `classes`, a list of {class, index, samples, right, answered, recall,
 * precision} (null instead of a division by 0), and `confusion`, the table. errors FORMAT: a name
 * is not UTF-8 */
rp_err rp_confusion_print_json(const rp_confusion *confusion, const rp_confusion_about *about,
                               FILE *file) RP_MUST_CHECK;

#endif
