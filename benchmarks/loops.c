/* The rating systems with their default parameters as plain C loops: what a processor can do at most.
 *
 * Every loop rates matches of two teams, writes each team's expected score and each player's new state, and is checked
 * against the package in the same run.  Definitions: the package's files of the same names.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t matches;
    const int64_t *time;
    const int32_t *team_start, *place;
    const double *team_score;
    const int32_t *slot_start, *player;
    const double *score, *seconds, *performance;
    const bool *quit;
    const double *duration;
    double *expected;
} History;

/* gcc calls the library for fmin and fmax, because of NaN. */
static double lesser(double a, double b) { return a < b ? a : b; }
static double greater(double a, double b) { return a > b ? a : b; }
static double logistic(double x) { return 1.0 / (1.0 + exp(-x)); }

/* ---- wager ---- */

typedef struct { double mean, seconds; bool gone; } Side;
typedef struct { double rank, rank_over, time, time_over, change; bool up; } Stake;

static Side side(const History *h, int team, const double *rating) {
    int low = h->slot_start[team], high = h->slot_start[team + 1], size = high - low;
    int64_t cents = 0;
    Side s = {0.0, 0.0, true};
    for (int slot = low; slot < high; slot++) {
        cents += (int64_t)(rating[h->player[slot]] * 100.0 + 0.5);
        s.seconds += h->seconds[slot];
        s.gone &= h->quit[slot];
    }
    s.mean = (double)(size == 1 ? cents : (2 * cents + size) / (2 * size)); /* half up */
    return s;
}

static double time_ratio(double time, double over) { return time > 0.0 && over > 0.0 ? time / over : 1.0; }

/* Whether cents +- cents / 20 * rank / rank_over * time / time_over >= doubled / 2; whole cents and whole seconds. */
static bool __attribute__((noinline)) reaches(int64_t doubled, double cents, const Stake *s) {
    int64_t c = 1, d = 1, twice = 2 * (int64_t)cents;
    if (s->time > 0.0 && s->time_over > 0.0) c = (int64_t)s->time, d = (int64_t)s->time_over;
    __int128 change = (__int128)twice * (int64_t)s->rank * c;
    __int128 bound = (__int128)(s->up ? doubled - twice : twice - doubled) * 20 * (int64_t)s->rank_over * d;
    return s->up ? change >= bound : bound >= change;
}

static double settle(double cents, const Stake *s) {
    double change = cents * s->change;
    double value = s->up ? cents + change : cents - change;
    double after = floor(value + 0.5);
    if (fabs(value - after) >= 0.5 - 2e-15 * (cents + change)) { /* a tie, as far as doubles can tell */
        double lower = floor(value);
        after = reaches(2 * (int64_t)lower + 1, cents, s) ? lower + 1.0 : lower;
    }
    if (!(after <= 9e13)) return INFINITY;
    return greater(1.0, after / 100.0);
}

static double quit_rank(const History *h, int match, int slot, double cents, const Side *own, const Side *rival) {
    int low = h->slot_start[h->team_start[match]], high = h->slot_start[h->team_start[match] + 2];
    double longest = 0.0;
    for (int other = low; other < high; other++) longest = greater(longest, h->seconds[other]);
    double stayed = own->seconds + longest - h->seconds[slot];
    double change = own->mean / rival->mean * time_ratio(stayed, rival->seconds);
    Stake s = {own->mean, rival->mean, stayed, rival->seconds, 0.05 * change, false};
    if (change <= 1.0 || rival->seconds == 0.0) s = (Stake){1.0, 1.0, 1.0, 1.0, 0.05, false};
    return settle(cents, &s);
}

static void wager_team(const History *h, int match, int team, Side own, Side rival, int lead, double *rating) {
    bool wins = lead > 0 || (lead == 0 && own.mean < rival.mean), left = rival.gone && !own.gone;
    bool stays = lead == 0 && own.mean >= rival.mean && !left;
    Stake s = {own.mean, rival.mean, own.seconds, rival.seconds, 0.0, false};
    if (wins) s = (Stake){rival.mean, own.mean, rival.seconds, own.seconds, 0.0, true};
    if (left) s = (Stake){1.0, 1.0, 1.0, 1.0, 0.0, true};
    s.change = 0.05 * (s.rank / s.rank_over) * time_ratio(s.time, s.time_over);
    for (int slot = h->slot_start[team]; slot < h->slot_start[team + 1]; slot++) {
        double *record = &rating[h->player[slot]];
        double cents = floor(*record * 100.0 + 0.5);
        if (h->quit[slot])
            *record = quit_rank(h, match, slot, cents, &own, &rival);
        else if (!stays)
            *record = settle(cents, &s);
    }
}

void wager(const History *h, double *rating) {
    for (int match = 0; match < h->matches; match++) {
        int one = h->team_start[match];
        Side a = side(h, one, rating), b = side(h, one + 1, rating);
        double ratio = b.mean / a.mean;
        h->expected[one] = 1.0 / (1.0 + ratio * ratio);
        h->expected[one + 1] = 1.0 - h->expected[one];
        int lead = h->place[one + 1] - h->place[one];
        wager_team(h, match, one, a, b, lead, rating);
        wager_team(h, match, one + 1, b, a, -lead, rating);
    }
}

/* ---- battlepoints ---- */

static const double RATE = 2.302585092994046 / 400.0;
static const double K[] = {32.0, 28.0, 24.0, 16.0}, LOPSIDED[] = {1.2, 1.5, 1.8, 2.1};

static double mean_rating(const History *h, int team, const double *rating) {
    int low = h->slot_start[team], high = h->slot_start[team + 1];
    double total = 0.0;
    for (int slot = low; slot < high; slot++) total += rating[h->player[slot]];
    return total / (high - low);
}

static void battlepoints_team(const History *h, int team, int rival, double expected, double mean, double *rating) {
    int low = h->slot_start[team], high = h->slot_start[team + 1];
    int ahead = h->place[rival] - h->place[team];
    double own = h->team_score[team], other = h->team_score[rival];
    bool lopsided = ahead > 0 ? own > 0.0 && other == 0.0 : ahead < 0 && other > 0.0 && own == 0.0;
    double won = ahead > 0 ? 1.0 : ahead == 0 ? 0.5 : 0.0;
    for (int slot = low; slot < high; slot++) {
        double *record = &rating[h->player[slot]];
        double before = *record, whole = floor(before);
        int at = (whole > 1200.0) + (whole > 1500.0) + (whole > 2000.0);
        double surprise = won - (high - low == 1 ? expected : logistic((before - mean) * RATE));
        *record = greater(700.0, before + K[at] * surprise * (lopsided ? LOPSIDED[at] : 1.0));
    }
}

void battlepoints(const History *h, double *rating) {
    for (int match = 0; match < h->matches; match++) {
        int one = h->team_start[match];
        double a = mean_rating(h, one, rating), b = mean_rating(h, one + 1, rating);
        double expected = logistic((a - b) * RATE);
        h->expected[one] = expected;
        h->expected[one + 1] = 1.0 - expected;
        battlepoints_team(h, one, one + 1, expected, b, rating);
        battlepoints_team(h, one + 1, one, 1.0 - expected, a, rating);
    }
}

/* ---- scorefactor ---- */

enum { LARGEST = 64 }; /* players in a match */

typedef struct { double rating; int64_t games, last_played; } Played;

static double foretell(double own, double other) {
    return logistic(lesser(greater(own - other, -400.0), 400.0) * RATE);
}

static double weight(const History *h, int slot, double duration, int64_t games, double *seconds) {
    double learned = games >= 32 ? 0.2 : 1.0 - 0.8 * games / 32, told = h->seconds[slot];
    *seconds = 1.0;
    if (isnan(told)) return 200.0 * learned;
    *seconds = lesser(told, duration);
    if (*seconds < 120.0 || *seconds < 0.5 * duration) return 0.0;
    return 200.0 * lesser(1.0, *seconds / 600.0) * learned;
}

static double score_share(double a, double b) {
    double least = lesser(0.0, lesser(a, b)), total = (a - least) + (b - least);
    return total > 0.0 ? (a - least) / total : 0.5;
}

void scorefactor(const History *h, Played *state) {
    for (int match = 0; match < h->matches; match++) {
        int one = h->team_start[match];
        int low = h->slot_start[one], middle = h->slot_start[one + 1], high = h->slot_start[one + 2];
        int size = high - low, compared = 0, ahead = h->place[one + 1] - h->place[one];
        double k[LARGEST], rate[LARGEST], rating[LARGEST], gain[LARGEST], seconds, total = 0.0;
        for (int i = 0; i < size; i++) {
            Played *record = &state[h->player[low + i]];
            k[i] = weight(h, low + i, h->duration[match], record->games, &seconds);
            rate[i] = size == 2 ? 0.0 : h->score[low + i] / seconds;
            rating[i] = record->rating;
            gain[i] = 0.0;
            compared += k[i] > 0.0;
        }
        for (int i = 0; i < middle - low; i++)
            for (int j = middle - low; j < size; j++) total += foretell(rating[i], rating[j]);
        h->expected[one] = total / ((middle - low) * (high - middle));
        h->expected[one + 1] = 1.0 - h->expected[one];
        for (int i = 0; i < size; i++)
            for (int j = i + 1; j < size; j++) {
                if (k[i] == 0.0 || k[j] == 0.0) continue;
                double share = size > 2 ? score_share(rate[i], rate[j]) : ahead > 0 ? 1.0 : ahead == 0 ? 0.5 : 0.0;
                double surprise = share - foretell(rating[i], rating[j]);
                gain[i] += surprise;
                gain[j] -= surprise;
            }
        for (int i = 0; i < size && compared > 1; i++)
            if (k[i] > 0.0) {
                Played *record = &state[h->player[low + i]];
                record->rating = greater(100.0, rating[i] + k[i] * gain[i] / (compared - 1));
                record->games++;
                record->last_played = h->time[match];
            }
    }
}

/* ---- prav ---- */

enum { WINDOW = 10 };

typedef struct {
    double rating, mean, volatility;
    int64_t games;
    double outcome[WINDOW], lead[WINDOW], variance[WINDOW];
} Judged;

static double normal_cdf(double x) { return 0.5 * erfc(-x * 0.7071067811865476); }

static void sums(const History *h, int team, const Judged *state, double *mean, double *variance) {
    *mean = *variance = 0.0;
    for (int slot = h->slot_start[team]; slot < h->slot_start[team + 1]; slot++) {
        *mean += state[h->player[slot]].mean;
        *variance += state[h->player[slot]].volatility;
    }
}

static double outcome(int ahead, double performance) {
    if (ahead == 0) return 0.5;
    double value = ahead > 0 ? 1.0 : 0.0;
    if (performance > 0.0) return value + performance * ((ahead > 0 ? 1.0 : 0.5) - value);
    if (performance < 0.0) return value - performance * ((ahead > 0 ? 0.5 : 0.0) - value);
    return value;
}

static void judge(Judged *record, int team_size) {
    int games = record->games < WINDOW ? (int)record->games : WINDOW;
    double total = 0.0, foretold = 0.0, spread = 0.0;
    for (int k = 0; k < games; k++) {
        total += record->outcome[k];
        foretold += normal_cdf((record->lead[k] + record->mean) / sqrt(record->variance[k] + record->volatility));
    }
    double told = total / games;
    for (int k = 0; k < games; k++) spread += (record->outcome[k] - told) * (record->outcome[k] - told);
    record->mean += 2.0 / team_size * sqrt(record->volatility) * (told - foretold / games);
    record->volatility = greater(0.2, 4.0 * (spread + (WINDOW - games) * 0.25) / WINDOW);
    record->rating = 1500.0 + 200.0 * record->mean;
}

void prav(const History *h, Judged *state) {
    for (int match = 0; match < h->matches; match++) {
        int one = h->team_start[match];
        double mean[2], variance[2];
        sums(h, one, state, &mean[0], &variance[0]);
        sums(h, one + 1, state, &mean[1], &variance[1]);
        h->expected[one] = normal_cdf((mean[0] - mean[1]) / sqrt(variance[0] + variance[1]));
        h->expected[one + 1] = 1.0 - h->expected[one];
        for (int own = 0; own < 2; own++) {
            int team = one + own, low = h->slot_start[team], high = h->slot_start[team + 1];
            int ahead = h->place[one + 1 - own] - h->place[team];
            for (int slot = low; slot < high; slot++) {
                Judged *record = &state[h->player[slot]];
                int at = record->games++ % WINDOW;
                record->outcome[at] = outcome(ahead, h->performance[slot]);
                record->lead[at] = mean[own] - record->mean - mean[1 - own];
                record->variance[at] = variance[own] - record->volatility + variance[1 - own];
                judge(record, high - low);
            }
        }
    }
}
