/* The centre of a federated run as files: a rule is applied tensor by tensor to the weights of the
 * sites. The new files are made next to those that they replace, with the number of the round in
 * their metadata. */
#ifndef RP_FEDERATION_CENTER_H
#define RP_FEDERATION_CENTER_H

#include "federation/rule.h"
#include "nn/model.h"

enum { RP_CENTER_DIGEST = 17 };

typedef struct {
    const char *weights; /* its weights after the round */
    const char *moved;   /* elastic: file for the weights from which it goes on; else NULL */
    double samples;      /* that the site holds; above 0 */
    double steps;        /* rp_rule_member.steps */
} rp_center_member;

typedef struct {
    const char *center, *next; /* its files, now and after the round */
    const char *state;         /* file of the server's state; NULL: none yet */
    const char *next_state;
    uint64_t round;
    const rp_rule *rule;
    const rp_node *keep;            /* patterns of tensors that sites keep; NULL: none */
    const rp_model *model;          /* tells which tensors are running statistics */
    const rp_center_member *member; /* in the order in which sums are made */
    uint32_t count;                 /* 1 to RP_FEDERATED_MEMBERS_MAX */
} rp_center_round;

/* Makes the next centre. Floats are averaged; other tensors, and those that sites keep, stay those
 * of the centre. `digest`: of the next centre. *bad: the member whose file is invalid, or the
 * count. errors  FORMAT: a tensor is missing, of another shape, damaged or not finite; NUMERIC: the
 * rule gives a value that is not finite; IO */
rp_err rp_center_make(const rp_center_round *round, char digest[RP_CENTER_DIGEST],
                      uint32_t *bad) RP_MUST_CHECK;

#endif
