/* The rating systems with their default parameters as plain C loops: what a processor can do at most.
 *
 * Every loop rates matches of two teams (wenglin: of any number), writes each team's expected score and each player's
 * new state, and is checked against the package in the same run.  Definitions: the package's files of the same names.
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

typedef struct { double rating; int64_t games; } Battler;

static double mean_rating(const History *h, int team, const Battler *state) {
    int low = h->slot_start[team], high = h->slot_start[team + 1];
    double total = 0.0;
    for (int slot = low; slot < high; slot++) total += state[h->player[slot]].rating;
    return total / (high - low);
}

static void battlepoints_team(const History *h, int team, int rival, double expected, double mean, Battler *state) {
    int low = h->slot_start[team], high = h->slot_start[team + 1];
    int ahead = h->place[rival] - h->place[team];
    double own = h->team_score[team], other = h->team_score[rival];
    bool lopsided = ahead > 0 ? own > 0.0 && other == 0.0 : ahead < 0 && other > 0.0 && own == 0.0;
    double won = ahead > 0 ? 1.0 : ahead == 0 ? 0.5 : 0.0;
    for (int slot = low; slot < high; slot++) {
        Battler *record = &state[h->player[slot]];
        double before = record->rating, whole = floor(before);
        int at = (whole > 1200.0) + (whole > 1500.0) + (whole > 2000.0);
        double surprise = won - (high - low == 1 ? expected : logistic((before - mean) * RATE));
        record->games++;
        record->rating = greater(700.0, before + K[at] * surprise * (lopsided ? LOPSIDED[at] : 1.0));
    }
}

void battlepoints(const History *h, Battler *state) {
    for (int match = 0; match < h->matches; match++) {
        int one = h->team_start[match];
        double a = mean_rating(h, one, state), b = mean_rating(h, one + 1, state);
        double expected = logistic((a - b) * RATE);
        h->expected[one] = expected;
        h->expected[one + 1] = 1.0 - expected;
        battlepoints_team(h, one, one + 1, expected, b, state);
        battlepoints_team(h, one + 1, one, 1.0 - expected, a, state);
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
    int64_t provisional;
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
    record->provisional = record->games < WINDOW;
    record->mean += 0.5 / team_size * sqrt(record->volatility) * (told - foretold / games);
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

/* ---- elo ---- */

typedef struct { double rating; int64_t games; double score; int64_t top; } Ranked;

static double mean_elo(const History *h, int team, const Ranked *state) {
    int low = h->slot_start[team], high = h->slot_start[team + 1];
    double total = 0.0;
    for (int slot = low; slot < high; slot++) total += state[h->player[slot]].rating;
    return total / (high - low);
}

static double won(const History *h, int team, int rival) {
    int ahead = h->place[rival] - h->place[team];
    return ahead > 0 ? 1.0 : ahead == 0 ? 0.5 : 0.0;
}

void elo(const History *h, Ranked *state) {
    for (int match = 0; match < h->matches; match++) {
        int one = h->team_start[match];
        double lead = mean_elo(h, one, state) - mean_elo(h, one + 1, state);
        double expected = logistic(lead * RATE), change = 32.0 * (won(h, one, one + 1) - expected);
        h->expected[one] = expected;
        h->expected[one + 1] = 1.0 - expected;
        for (int slot = h->slot_start[one]; slot < h->slot_start[one + 1]; slot++)
            state[h->player[slot]].rating += change;
        for (int slot = h->slot_start[one + 1]; slot < h->slot_start[one + 2]; slot++)
            state[h->player[slot]].rating -= change;
    }
}

/* ---- glicko2 ---- */

static const double UNIT = 173.7178, MOST = 350.0 * 350.0, LEAST = 30.0 * 30.0, TAU = 0.5;
static const double GROWTH = 173.7178 * 173.7178 / 86400e6;

typedef struct { double rating, deviation, volatility; int64_t games, last_played; } Volatile;

static double variance_at(const Volatile *record, int64_t now) {
    double idle = record->games > 0 ? (double)(now - record->last_played) : 0.0;
    double growth = GROWTH * idle * record->volatility * record->volatility;
    return lesser(record->deviation * record->deviation + growth, MOST);
}

static double certainty(double variance) { return 1.0 / sqrt(1.0 + variance * (3.0 / (M_PI * M_PI * UNIT * UNIT))); }

static void average(const History *h, int team, int64_t now, const Volatile *state, double *rating, double *variance) {
    int low = h->slot_start[team], high = h->slot_start[team + 1];
    *rating = *variance = 0.0;
    for (int slot = low; slot < high; slot++) {
        *rating += state[h->player[slot]].rating;
        *variance += variance_at(&state[h->player[slot]], now);
    }
    *rating /= high - low;
    *variance /= high - low;
}

static double slope(double x, double start, double known, double square) {
    double e = exp(x), total = known + e;
    return e * (square - total) / (2.0 * total * total) - (x - start) / (TAU * TAU);
}

static double new_volatility(double volatility, double variance, double v, double delta) {
    double start = 2.0 * log(volatility), square = delta * delta, known = variance + v, a = start, b;
    if (square > known) {
        b = log(square - known);
    } else {
        b = start - TAU;
        while (slope(b, start, known, square) < 0.0) b -= TAU;
    }
    double at_a = slope(a, start, known, square), at_b = slope(b, start, known, square);
    while (fabs(b - a) > 1e-6) {
        double c = a + (a - b) * at_a / (at_b - at_a), at_c = slope(c, start, known, square);
        if (at_c * at_b <= 0.0)
            a = b, at_a = at_b;
        else
            at_a *= 0.5;
        b = c, at_b = at_c;
    }
    return exp(0.5 * a);
}

void glicko2(const History *h, Volatile *state) {
    for (int match = 0; match < h->matches; match++) {
        int one = h->team_start[match];
        int64_t now = h->time[match];
        double rating[2], variance[2];
        for (int own = 0; own < 2; own++) average(h, one + own, now, state, &rating[own], &variance[own]);
        double doubt = certainty(variance[0] + variance[1]);
        h->expected[one] = logistic(doubt * (rating[0] - rating[1]) / UNIT);
        h->expected[one + 1] = 1.0 - h->expected[one];
        for (int own = 0; own < 2; own++) {
            double g = certainty(variance[1 - own]), result = won(h, one + own, one + 1 - own);
            for (int slot = h->slot_start[one + own]; slot < h->slot_start[one + own + 1]; slot++) {
                Volatile *record = &state[h->player[slot]];
                double before = variance_at(record, now) / (UNIT * UNIT);
                double foretold = logistic(g * (record->rating - rating[1 - own]) / UNIT);
                double information = g * g * foretold * (1.0 - foretold), surprise = g * (result - foretold);
                if (information > 1e-20) {
                    double v = 1.0 / information;
                    record->volatility = new_volatility(record->volatility, before, v, v * surprise);
                }
                double after = 1.0 / (1.0 / before + information);
                record->rating += UNIT * after * surprise;
                record->deviation = sqrt(greater(UNIT * UNIT * after, LEAST));
                record->games++;
                record->last_played = now;
            }
        }
    }
}

/* ---- trueskill ---- */

static const double BETA2 = 25.0 / 6.0 * (25.0 / 6.0), TAU2 = 25.0 / 300.0 * (25.0 / 300.0);
static const double MARGIN = 0.12566134685507402 * 25.0 / 6.0; /* Phi^-1(0.55) times beta */
static const double DENSITY = 0.3989422804014327;

typedef struct { double rating, mean, deviation; } Believed;

/* P(a standard normal exceeds a) over exp(-a*a/2), a >= 0: Hart 1968, algorithm 5666, as given by West 2005. */
static double tail_ratio(double a) {
    static const double over[] = {
        0.0352624965998911, 0.700383064443688, 6.37396220353165, 33.912866078383,
        112.079291497871, 221.213596169931, 220.206867912376,
    };
    static const double under[] = {
        0.0883883476483184, 1.75566716318264, 16.064177579207, 86.7807322029461,
        296.564248779674, 637.333633378831, 793.826512519948, 440.413735824752,
    };
    double p = over[0], q = under[0];
    for (int k = 1; k < 7; k++) p = p * a + over[k];
    for (int k = 1; k < 8; k++) q = q * a + under[k];
    return p / q;
}

static double quick_cdf(double x) {
    double a = lesser(fabs(x), 40.0), tail = exp(-0.5 * a * a) * tail_ratio(a);
    return x > 0.0 ? 1.0 - tail : tail;
}

/* The tail over the density: Laplace's continued fraction. */
static double __attribute__((noinline)) far_ratio(double a) {
    double under = a;
    for (int k = 24; k > 0; k--) under = a + k / under;
    return 1.0 / under;
}

static double mills(double x) {
    if (x > 4.0) return far_ratio(x);
    double a = fabs(x);
    if (x >= 0.0) return tail_ratio(a) / DENSITY;
    double e = exp(-0.5 * a * a);
    return (1.0 - e * tail_ratio(a)) / (DENSITY * e);
}

static double v_win(double x) {
    if (x < -4.0) return 1.0 / far_ratio(-x);
    double a = lesser(fabs(x), 40.0), e = exp(-0.5 * a * a), ratio = tail_ratio(a);
    return DENSITY * (x > 0.0 ? e : 1.0) / (x > 0.0 ? 1.0 - e * ratio : ratio);
}

static double share(double w) { return lesser(greater(w, 0.0), 1.0); }

static void __attribute__((noinline)) draw_v_w(double t, double e, double *v, double *w) {
    double a = fabs(t), fade = exp(-2.0 * a * e), between = mills(a - e) - fade * mills(a + e);
    *v = (fade - 1.0) / between;
    *w = share(*v * *v + ((e - a) + (e + a) * fade) / between);
    if (t < 0.0) *v = -*v;
}

static double play_share(const History *h, int match, int slot) {
    double told = h->seconds[slot] / h->duration[match];
    return isnan(told) ? 1.0 : lesser(greater(told, 1e-4), 1.0);
}

static void trueskill_team(const History *h, int match, int team, double shift, double shrink, Believed *state) {
    for (int slot = h->slot_start[team]; slot < h->slot_start[team + 1]; slot++) {
        Believed *record = &state[h->player[slot]];
        double weight = play_share(h, match, slot), variance = record->deviation * record->deviation + TAU2;
        record->mean += weight * variance * shift;
        record->deviation = sqrt(variance * (1.0 - weight * weight * variance * shrink));
        record->rating = record->mean - 3.0 * record->deviation;
    }
}

void trueskill(const History *h, Believed *state) {
    for (int match = 0; match < h->matches; match++) {
        int one = h->team_start[match], players = h->slot_start[one + 2] - h->slot_start[one];
        double whole = 0.0, whole_variance = 0.0, lead = 0.0, variance = 0.0;
        for (int own = 0; own < 2; own++) {
            double sign = own ? -1.0 : 1.0;
            for (int slot = h->slot_start[one + own]; slot < h->slot_start[one + own + 1]; slot++) {
                const Believed *record = &state[h->player[slot]];
                double weight = play_share(h, match, slot);
                double doubt = record->deviation * record->deviation + TAU2 + BETA2;
                whole += sign * record->mean;
                whole_variance += doubt;
                lead += sign * weight * record->mean;
                variance += weight * weight * doubt;
            }
        }
        double scale = 1.0 / sqrt(whole_variance), margin = MARGIN * sqrt(players);
        double win = quick_cdf((whole - margin) * scale), loss = quick_cdf((-whole - margin) * scale);
        h->expected[one] = win + 0.5 * greater(0.0, 1.0 - win - loss);
        h->expected[one + 1] = 1.0 - h->expected[one];
        scale = 1.0 / sqrt(variance);
        lead *= scale;
        margin *= scale;
        int ahead = h->place[one + 1] - h->place[one];
        double sign = ahead >= 0 ? 1.0 : -1.0, v, w;
        if (ahead == 0) {
            draw_v_w(lead, margin, &v, &w);
        } else {
            double x = sign * lead - margin;
            v = v_win(x);
            w = share(v * (v + x));
        }
        trueskill_team(h, match, one, sign * v * scale, w * scale * scale, state);
        trueskill_team(h, match, one + 1, -sign * v * scale, w * scale * scale, state);
    }
}

/* ---- wenglin, Plackett-Luce ---- */

typedef struct { double mean, variance, strength; int team, place; } Rival;

static void expect(const History *h, int first, const Rival *rivals, int count) {
    for (int i = 0; i < count; i++) h->expected[first + i] = 0.0;
    for (int i = 0; i < count; i++) {
        double total = h->expected[first + i]; /* against the teams before it */
        for (int q = i + 1; q < count; q++) {
            double c = sqrt(rivals[i].variance + rivals[q].variance + 2.0 * BETA2);
            double win = logistic((rivals[i].mean - rivals[q].mean) / c);
            total += win;
            h->expected[first + q] += 1.0 - win;
        }
        h->expected[first + i] = total / (count - 1);
    }
}

static void wenglin_team(const History *h, int match, const Rival *own, double omega, double delta, Believed *state) {
    for (int slot = h->slot_start[own->team]; slot < h->slot_start[own->team + 1]; slot++) {
        Believed *record = &state[h->player[slot]];
        double weight = play_share(h, match, slot), variance = record->deviation * record->deviation + TAU2;
        double part = variance / own->variance * weight;
        record->mean += part * omega;
        record->deviation = sqrt(variance * greater(1.0 - part * delta, 1e-4));
        record->rating = record->mean - 3.0 * record->deviation;
    }
}

void wenglin(const History *h, Believed *state) {
    for (int match = 0; match < h->matches; match++) {
        int first = h->team_start[match], count = h->team_start[match + 1] - first;
        Rival rivals[LARGEST], finish[LARGEST];
        double total = 0.0, most = -INFINITY, rest[LARGEST], behind = 0.0, once = 0.0, twice = 0.0;
        for (int i = 0; i < count; i++) {
            double mean = 0.0, variance = 0.0;
            for (int slot = h->slot_start[first + i]; slot < h->slot_start[first + i + 1]; slot++) {
                const Believed *record = &state[h->player[slot]];
                mean += record->mean;
                variance += record->deviation * record->deviation + TAU2;
            }
            rivals[i] = (Rival){mean, variance, 0.0, first + i, h->place[first + i]};
            total += variance + BETA2;
            most = greater(most, mean);
        }
        expect(h, first, rivals, count);
        double c = sqrt(total);
        for (int i = 0; i < count; i++) {
            int ahead = 0;
            for (int q = 0; q < i; q++) ahead += rivals[q].place <= rivals[i].place;
            for (int q = i + 1; q < count; q++) ahead += rivals[q].place < rivals[i].place;
            rivals[i].strength = exp((rivals[i].mean - most) / c);
            finish[ahead] = rivals[i];
        }
        for (int at = count - 1; at >= 0; at--) rest[at] = behind += finish[at].strength;
        for (int begin = 0, end; begin < count; begin = end) {
            for (end = begin; end < count && finish[end].place == finish[begin].place;) end++;
            once += 1.0 / rest[begin]; /* those who tied met the same rivals, each for a part */
            twice += 1.0 / (rest[begin] * rest[begin]);
            for (int at = begin; at < end; at++) {
                double strength = finish[at].strength, variance = finish[at].variance;
                double omega = (1.0 / (end - begin) - strength * once) * variance / c;
                double delta = strength * (once - strength * twice) * variance * sqrt(variance) / (c * c * c);
                wenglin_team(h, match, &finish[at], omega, delta, state);
            }
        }
    }
}

/* ---- even ---- */

enum { ROOM = 5 };
typedef struct {
    double rating, deviation, scale;
    int64_t games, last_played;
    double by_margins, mean[ROOM], variance[ROOM];
} Watched;
typedef struct { double mean, variance; } Belief;
typedef struct {
    Belief side, own_side, body, leavers, experience, entry;
    double square, product, spread, weight;
} Expert;
typedef struct { double mean, variance, share, young; } Seen;

typedef struct { double v0, step, drift, away, by_margin, shared, settled; bool averaged; } View;

static const double DAY = 86400e6;
#define INLINE static inline __attribute__((always_inline))

static const View FOUR[] = {
    {0.64, 4e-4, 9e-6 / DAY, 0.0, 0.66, 0.4, 0.03, false},
    {0.1, 64e-4, 225e-6 / DAY, 0.002 / DAY, 0.97, 0.4, 0.05, false},
    {1.0, 16e-4, 64e-6 / DAY, 0.0, 0.93, 0.4, 0.06, false},
    {1.5, 4e-4, 25e-6 / DAY, 0.002 / DAY, 0.0, 1.0, 0.05, true},
};
static const View ALONE[] = {{0.4, 16e-4, 64e-6 / DAY, 0.0, 0.75, 0.4, 0.04, false}};
static const double SLOPE = 1.6, WIDTH_OF_DRAW = 0.2;

static void learn_number(Belief *b, double feature, double push, double pull, double least) {
    double before = b->variance;
    b->mean += before * feature * push;
    b->variance = before * greater(least, 1.0 - before * feature * feature * pull);
}

INLINE double grown(const Watched *record, const View *views, int k, int64_t now) {
    if (record->games == 0) return record->variance[k];
    double variance = record->variance[k] + views[k].drift * greater((double)(now - record->last_played), 0.0) + views[k].step;
    return lesser(variance, 4.0 * views[k].v0);
}

INLINE double begun(const Watched *record, const View *views, int k, int64_t now, double entry) {
    if (record->games == 0) return record->mean[k] + entry;
    return record->mean[k] / (1.0 + views[k].away * greater((double)(now - record->last_played), 0.0));
}

INLINE Seen see(
    const History *h, int team, const View *views, int k, int64_t now, double entry, const Watched *state
) {
    int low = h->slot_start[team], size = h->slot_start[team + 1] - low;
    Seen s = {0.0, 0.0, size == 1 ? 1.0 : views[k].averaged ? 1.0 / size : 1.0 / sqrt(size), 0.0};
    for (int slot = low; slot < low + size; slot++) {
        const Watched *record = &state[h->player[slot]];
        double variance = grown(record, views, k, now);
        s.mean += begun(record, views, k, now, entry);
        s.variance += variance;
        if (record->games < 25) s.young += s.share * lesser(variance / views[k].v0, 1.0);
    }
    s.mean *= s.share;
    s.variance *= s.share * s.share;
    return s;
}

static double played_before(const History *h, int team, const Watched *state) {
    int low = h->slot_start[team], high = h->slot_start[team + 1];
    double total = 0.0;
    for (int slot = low; slot < high; slot++) total += log2(1.0 + (double)state[h->player[slot]].games);
    return total / (high - low);
}

INLINE void learn_team(
    const History *h, int team, const View *views, int k, int64_t now, Seen s, double entry, double push, double pull,
    double turn, Watched *state
) {
    for (int slot = h->slot_start[team]; slot < h->slot_start[team + 1]; slot++) {
        Watched *record = &state[h->player[slot]];
        double before = grown(record, views, k, now), own = s.share * s.share * before;
        record->mean[k] = begun(record, views, k, now, entry) + s.share * before * push;
        record->variance[k] = before * greater(0.05, 1.0 - (own + views[k].shared * (s.variance - own)) * pull);
        record->by_margins += own * turn;
    }
}

static double present(const History *h, int match, int team, bool *left) {
    double total = 0.0;
    for (int slot = h->slot_start[team]; slot < h->slot_start[team + 1]; slot++) {
        *left |= h->quit[slot];
        total += h->quit[slot] ? play_share(h, match, slot) : 1.0;
    }
    return greater(total, 0.5);
}

INLINE void mix(Expert *experts, int count, double *covariance, const double *x, double chance, double score) {
    double direction[ROOM], along = 0.0, r = chance * (1.0 - chance), total = 0.0;
    for (int i = 0; i < count; i++) {
        direction[i] = 0.0;
        for (int j = 0; j < count; j++) direction[i] += covariance[i * count + j] * x[j];
        along += direction[i] * x[i];
    }
    double factor = r / (1.0 + r * along);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) covariance[i * count + j] -= factor * direction[i] * direction[j];
    for (int i = 0; i < count; i++) {
        double step = 0.0;
        for (int j = 0; j < count; j++) step += covariance[i * count + j] * x[j];
        experts[i].weight = greater(experts[i].weight + step * (score - chance), 0.0);
        total += experts[i].weight;
    }
    for (int i = 0; i < count; i++) {
        covariance[i * count + i] += 3e-6;
        if (total > 1.3) experts[i].weight *= 1.3 / total;
        if (total < 0.2) experts[i].weight = 0.2 / count;
    }
}

static double margins_of(const History *h, int team, const Watched *state) {
    double total = 0.0;
    for (int slot = h->slot_start[team]; slot < h->slot_start[team + 1]; slot++) total += state[h->player[slot]].by_margins;
    return total;
}

static double root(double score) { return score >= 0.0 ? sqrt(score) : -sqrt(-score); }

INLINE void rate_with(const History *h, Watched *state, const View *views, int count) {
    Expert experts[ROOM];
    double covariance[ROOM * ROOM] = {0.0}, points[ROOM], margins = 0.0;
    double factor = 1.0, doubt = 0.005; /* of the calibration */
    double means[5] = {0.0}, decided = 0.0, worth = 1.0; /* of margins */
    double trust = 1.2, unsure = 0.1; /* in margins */
    for (int k = 0; k < count; k++) {
        experts[k] = (Expert){{0.0, 0.003}, {0.0, 0.003}, {1.5, 1.0}, {1.5, 1.0}, {0.0, 0.002}, {0.0, 0.05}, 0.0, 0.0, 0.0, 1.0 / count};
        covariance[k * count + k] = 0.1;
        points[k] = 400.0 / log(10.0) * SLOPE / sqrt(1.0 + 2.0 * views[k].settled);
    }
    for (int match = 0; match < h->matches; match++) {
        int one = h->team_start[match], two = one + 1, ahead = h->place[two] - h->place[one];
        int size = h->slot_start[two] - h->slot_start[one], rivals = h->slot_start[two + 1] - h->slot_start[two];
        int64_t now = h->time[match];
        bool gone = false;
        double more = size == rivals ? 0.0 : log((double)size / rivals);
        double own_present = present(h, match, one, &gone), rival_present = present(h, match, two, &gone);
        double left = gone ? log(own_present / rival_present) - more : 0.0;
        double known = played_before(h, one, state) - played_before(h, two, state);
        double a = h->team_score[one], b = h->team_score[two];
        bool scored = !isnan(a) && !isnan(b);
        double margin = ahead == 0 ? 0.0 : pow(fabs(root(a) - root(b)), 0.9) * (ahead > 0 ? 1.0 : -1.0);
        double x[ROOM], weights[ROOM], mixed = 0.0, scale = 0.0;
        double turned = margins_of(h, one, state) - margins_of(h, two, state);
        for (int k = 0; k < count; k++) scale += factor * experts[k].weight;
        for (int k = 0; k < count; k++) {
            Expert *e = &experts[k];
            weights[k] = factor * e->weight;
            Seen own = see(h, one, views, k, now, e->entry.mean, state), rival = see(h, two, views, k, now, e->entry.mean, state);
            double lead = own.mean - rival.mean + e->side.mean + e->own_side.mean;
            double spread = own.variance + rival.variance + e->side.variance + e->own_side.variance + 1.0;
            lead += more * e->body.mean + known * e->experience.mean;
            spread += more * more * e->body.variance + known * known * e->experience.variance;
            double slope = SLOPE / sqrt(spread);
            double above = logistic(slope * (lead + WIDTH_OF_DRAW)), over = logistic(slope * (lead - WIDTH_OF_DRAW));
            double p = 0.5 * (above + over);
            x[k] = p <= 1e-9 ? -20.0 : p >= 1.0 - 1e-9 ? 20.0 : log(p / (1.0 - p));
            mixed += e->weight * x[k];
            if (left != 0.0) {
                lead += left * e->leavers.mean;
                above = logistic(slope * (lead + WIDTH_OF_DRAW));
                over = logistic(slope * (lead - WIDTH_OF_DRAW));
            }
            double rise = above * (1.0 - above), fall = over * (1.0 - over);
            double push = slope * (ahead > 0 ? 1.0 - over : ahead < 0 ? -above : 1.0 - above - over);
            double pull = slope * slope * (ahead > 0 ? fall : ahead < 0 ? rise : rise + fall);
            double turn = 0.0;
            if (scored) {
                if (margins >= 3.0 && e->square > 0.0) {
                    double whole = views[k].by_margin * worth * margins / (margins + 5.0), limit = 4.0 * sqrt(spread);
                    double part = whole * lesser(trust, 1.0);
                    double unit = (e->product + sqrt(e->product * e->product + 4.0 * e->square * e->spread)) / (2.0 * e->square);
                    double surprise = lesser(greater(unit * margin - lead, -limit), limit);
                    turn = whole * (surprise / spread - push);
                    push = part * surprise / spread + (1.0 - part) * push;
                    pull = part / spread + (1.0 - part) * pull;
                }
                double rate = greater(1.0 / (margins + 1.0), 0.0005);
                e->square += rate * (margin * margin - e->square);
                e->product += rate * (margin * lead - e->product);
                e->spread += rate * (spread - e->spread);
            }
            turn = weights[k] * (turn - pull * turned / scale);
            learn_team(h, one, views, k, now, own, e->entry.mean, push, pull, turn, state);
            learn_team(h, two, views, k, now, rival, e->entry.mean, -push, pull, -turn, state);
            learn_number(&e->entry, own.young - rival.young, push, pull, 0.2);
            double most = 3.0 * sqrt(views[k].v0);
            e->entry.mean = lesser(greater(e->entry.mean, -most), most);
            e->entry.variance += 1e-6;
            learn_number(&e->side, 1.0, push, pull, 0.05);
            learn_number(&e->own_side, 1.0, push, pull, 0.05);
            learn_number(&e->body, more, push, pull, 0.05);
            learn_number(&e->experience, known, push, pull, 0.05);
            if (left != 0.0) learn_number(&e->leavers, left, push, pull, 0.05);
        }
        double chance = logistic(factor * mixed), score = won(h, one, two);
        h->expected[one] = chance;
        h->expected[two] = 1.0 - chance;
        double lean = SLOPE * turned, reserve = trust - lesser(trust, 1.0);
        double leant = logistic(factor * mixed + reserve * lean);
        unsure /= 1.0 + unsure * lean * lean * leant * (1.0 - leant);
        trust = greater(trust + unsure * lean * (score - leant), 0.0);
        doubt /= 1.0 + chance * (1.0 - chance) * mixed * mixed * doubt;
        factor = lesser(greater(factor + doubt * mixed * (score - chance), 0.5), 1.5);
        doubt += 3e-6;
        mix(experts, count, covariance, x, logistic(mixed), score);
        margins += scored;
        if (scored && ahead != 0) {
            double size = fabs(margin), odds = ahead > 0 ? mixed : -mixed;
            double values[] = {size, odds, size * size, odds * odds, size * odds};
            double rate = greater(1.0 / (decided + 1.0), 0.0005);
            for (int i = 0; i < 5; i++) means[i] += rate * (values[i] - means[i]);
            decided += 1.0;
            double by_size = means[2] - means[0] * means[0], by_odds = means[3] - means[1] * means[1];
            bool differ = by_size > 0.01 * means[2] && by_odds > 0.0;
            double r = differ ? (means[4] - means[0] * means[1]) / sqrt(by_size * by_odds) : 0.0;
            double seen = lesser(decided, 2000.0);
            worth = lesser(greater((seen * r + 50.0 * 0.1) / (seen + 50.0) / 0.1, 0.0), 1.0);
        }
        for (int slot = h->slot_start[one]; slot < h->slot_start[two + 1]; slot++) {
            Watched *record = &state[h->player[slot]];
            record->rating = 1500.0;
            record->deviation = record->scale = 0.0;
            for (int k = 0; k < count; k++) {
                record->rating += weights[k] * points[k] * record->mean[k];
                record->deviation += points[k] * sqrt(record->variance[k]) / count;
                record->scale += weights[k];
            }
            record->games++;
            record->last_played = now;
        }
    }
}

void even(const History *h, Watched *state) { rate_with(h, state, FOUR, 4); }

void even_plain(const History *h, Watched *state) { rate_with(h, state, ALONE, 1); }
