// Numbers and names out of lines of text: rows of a matrix, labels of states, values of variables.
//
// A text is whole lines: each loop over bytes ends at a line feed, the last byte of the text at the latest.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace {

using Index = std::int64_t;

// `LineStatus` of engines/host/compiled/text.py.
enum Status : Index {
    OK,
    BAD_INTEGER,
    TOO_FEW,
    TOO_MANY,
    BAD_STATE,
    BAD_LABEL,
    BAD_SHAPE,
    BAD_VALUE,
    REPEATED,
    OTHER_TYPE,
};

constexpr Index MOST_DIGITS = 18;
constexpr std::int32_t LARGEST_VALUE = 2147483647;

bool is_gap(char sign) { return sign == ' ' || sign == '\t' || sign == '\r'; }
bool is_digit(char sign) { return sign >= '0' && sign <= '9'; }
bool in_token(char sign) { return static_cast<unsigned char>(sign) > ' '; }

const char* token_end(const char* at) {
    while (in_token(*at)) at++;
    return at;
}

const char* next_token(const char* at) {
    while (is_gap(*at)) at++;
    return at;
}

// The first byte of a line that counts: its line feed, if there is nothing but a comment.
const char* line_content(const char* at) {
    at = next_token(at);
    if (*at == '#')
        while (*at != '\n') at++;
    return at;
}

// The integer from 0 on that a token is, or -1.
Index whole_number(const char* begin, const char* end) {
    if (end - begin > MOST_DIGITS) return -1;
    std::uint64_t number = 0;
    auto [stop, error] = std::from_chars(begin, end, number);
    return error == std::errc() && stop == end ? static_cast<Index>(number) : -1;
}

// Whether a token is a decimal number within the range of doubles; `value` is then the nearest one.
bool decimal_number(const char* begin, const char* end, double& value) {
    bool negative = *begin == '-';
    if (negative || *begin == '+') begin++;
    // Else from_chars would take a second sign, and the names of infinity and of what is no number.
    if (!is_digit(*begin) && *begin != '.') return false;
    auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || stop != end) return false;
    if (negative) value = -value;
    return true;
}

// Names numbered from 1 in the order in which they are met, in a hash table with open addressing.
class Names {
   public:
    Names(
        std::int32_t* slots, Index num_slots, std::int64_t* hashes, std::int64_t* offsets, char* bytes,
        std::int32_t* lines, Index count)
        : slots_(slots), mask_(num_slots - 1), hashes_(hashes), offsets_(offsets), bytes_(bytes), lines_(lines),
          count_(count) {}

    Index count() const { return count_; }

    // The number of a name, which is added if it is new.
    std::int32_t number(const char* begin, const char* end, Index line) {
        std::uint64_t hash = 1469598103934665603u;
        for (const char* at = begin; at < end; at++)
            hash = (hash ^ static_cast<unsigned char>(*at)) * 1099511628211u;
        auto code = static_cast<std::int64_t>(hash);
        Index slot = first_slot(code);
        for (; slots_[slot] != 0; slot = (slot + 1) & mask_)
            if (hashes_[slots_[slot]] == code && is(slots_[slot], begin, end)) return slots_[slot];
        auto added = static_cast<std::int32_t>(++count_);
        slots_[slot] = added;
        hashes_[added] = code;
        lines_[added] = static_cast<std::int32_t>(line);
        std::memcpy(bytes_ + offsets_[added], begin, end - begin);
        offsets_[added + 1] = offsets_[added] + (end - begin);
        return added;
    }

    // Finds a slot for each name, of slots that are empty.
    void fill_slots() {
        for (Index number = 1; number <= count_; number++) {
            Index slot = first_slot(hashes_[number]);
            while (slots_[slot] != 0) slot = (slot + 1) & mask_;
            slots_[slot] = static_cast<std::int32_t>(number);
        }
    }

   private:
    Index first_slot(std::int64_t code) const { return (code ^ (code >> 29)) & mask_; }

    bool is(std::int32_t number, const char* begin, const char* end) const {
        Index first = offsets_[number];
        return offsets_[number + 1] - first == end - begin && std::memcmp(bytes_ + first, begin, end - begin) == 0;
    }

    std::int32_t* slots_;
    Index mask_;
    std::int64_t *hashes_, *offsets_;
    char* bytes_;
    std::int32_t* lines_;
    Index count_;
};

// Where a scan stands: the next byte and its line.
struct Place {
    const char* at;
    Index line;
};

// Moves on to the next line that holds more than a comment; false at the end.
bool next_line(Place& place, const char* end) {
    for (; place.at < end; place.at++, place.line++) {
        place.at = line_content(place.at);
        if (*place.at != '\n') return true;
    }
    return false;
}

void leave_line(Place& place) {
    place.at++;
    place.line++;
}

// Rows of integers and a value, as arrays with a place for each row.
struct Rows {
    const char* text;
    Index integers;
    std::int64_t* keys;
    double* values;
    std::int32_t *lines, *unread, *actions;
    Index rows, num_unread;
};

Status scan_row(Place& place, Rows& out, Names& names) {
    std::int64_t* keys = out.keys + out.rows * out.integers;
    for (Index field = 0; field < out.integers; field++) {
        const char* stop = token_end(place.at);
        if (stop == place.at) return *stop == '\n' ? TOO_FEW : BAD_INTEGER;
        keys[field] = whole_number(place.at, stop);
        if (keys[field] < 0) return BAD_INTEGER;
        place.at = next_token(stop);
    }
    const char* value = place.at;
    const char* stop = token_end(value);
    if (stop == value) return TOO_FEW;
    bool is_read = decimal_number(value, stop, out.values[out.rows]);
    place.at = next_token(stop);
    if (out.actions) {
        const char* behind = token_end(place.at);
        bool named = behind > place.at;
        out.actions[out.rows] = named ? names.number(place.at, behind, place.line) : 0;
        place.at = next_token(behind);
    }
    if (*place.at != '\n') return TOO_MANY;
    if (!is_read) {
        Index token[] = {out.rows, value - out.text, stop - out.text};
        std::copy(token, token + 3, out.unread + 3 * out.num_unread++);
    }
    out.lines[out.rows++] = static_cast<std::int32_t>(place.line);
    return OK;
}

// The head `state:` of a line; the place is then the first byte that counts behind it.
Status scan_state(Place& place, Index num_states, Index& state) {
    const char* stop = place.at;
    while (is_digit(*stop)) stop++;
    state = whole_number(place.at, stop);
    place.at = next_token(stop);
    if (state < 0 || *place.at != ':') return BAD_SHAPE;
    if (state >= num_states) return BAD_STATE;
    place.at = next_token(place.at + 1);
    return OK;
}

enum Kind : std::int8_t { UNKNOWN, INTEGER, BOOLEAN };

// What the token at a place is, up to a comma or a bracket, and its value; the place is then behind it.
Kind scan_value(Place& place, std::int32_t& value) {
    const char* begin = place.at;
    const char* end = begin;
    while (in_token(*end) && *end != ',' && *end != ')') end++;
    place.at = end;
    for (bool truth : {false, true}) {
        const char* name = truth ? "true" : "false";
        Index length = truth ? 4 : 5;
        if (end - begin == length && std::memcmp(begin, name, length) == 0) {
            value = truth;
            return BOOLEAN;
        }
    }
    bool negative = *begin == '-';
    Index number = whole_number(begin + negative, end);
    if (number < 0 || number > LARGEST_VALUE) return UNKNOWN;
    value = static_cast<std::int32_t>(negative ? -number : number);
    return INTEGER;
}

// The values `(value,…)` of a state's variables, to the end of the line.
Status scan_values(Place& place, Index num_variables, std::int32_t* values, std::int8_t* kinds) {
    if (*place.at != '(') return BAD_SHAPE;
    for (Index variable = 0; variable < num_variables; variable++) {
        place.at = next_token(place.at + 1);
        Kind kind = scan_value(place, values[variable]);
        if (kind == UNKNOWN) return BAD_VALUE;
        if (kinds[variable] == UNKNOWN) kinds[variable] = kind;
        if (kinds[variable] != kind) return OTHER_TYPE;
        place.at = next_token(place.at);
        bool last = variable == num_variables - 1;
        if (*place.at != (last ? ')' : ',')) return last ? TOO_MANY : TOO_FEW;
    }
    place.at = next_token(place.at + 1);
    return *place.at == '\n' ? OK : TOO_MANY;
}

}  // namespace

// How many lines there are.
extern "C" std::int64_t pg_count_lines(const char* text, std::int64_t size) {
    return std::count(text, text + size, '\n');
}

// Scans lines of integers, a value and, if `actions` is not null, perhaps an action: its number, or 0.
// keys: shape (rows, integers). lines: within the text. unread: shape (rows, 3), the row, first byte and
// end of each value that is no decimal number within the range of doubles. Names lie in `slots` to
// `name_lines`. counts: in, the names so far; out, lines, rows, unread values, names. Returns a status.
extern "C" std::int64_t pg_scan_rows(
    const char* text, std::int64_t size, std::int64_t integers, std::int64_t* keys, double* values,
    std::int32_t* lines, std::int32_t* unread, std::int32_t* actions, std::int32_t* slots, std::int64_t num_slots,
    std::int64_t* hashes, std::int64_t* name_offsets, char* name_bytes, std::int32_t* name_lines,
    std::int64_t* counts) {
    Names names(slots, num_slots, hashes, name_offsets, name_bytes, name_lines, counts[3]);
    Rows out{text, integers, keys, values, lines, unread, actions, 0, 0};
    Place place{text, 0};
    Status status = OK;
    while (next_line(place, text + size)) {
        status = scan_row(place, out, names);
        if (status != OK) break;
        leave_line(place);
    }
    std::int64_t results[] = {place.line, out.rows, out.num_unread, names.count()};
    std::memcpy(counts, results, sizeof(results));
    return status;
}

// Finds a slot for each of `count` names, in slots that are empty.
extern "C" void pg_fill_name_slots(
    std::int32_t* slots, std::int64_t num_slots, std::int64_t* hashes, std::int64_t count) {
    Names(slots, num_slots, hashes, nullptr, nullptr, nullptr, count).fill_slots();
}

// Sets masks of shape (labels, states) from lines `state: label label …`. Returns a status; line: within
// the text.
extern "C" std::int64_t pg_scan_labels(
    const char* text, std::int64_t size, std::int64_t num_labels, std::int64_t num_states, std::uint8_t* masks,
    std::int64_t* line) {
    Place place{text, 0};
    Status status = OK;
    while (status == OK && next_line(place, text + size)) {
        Index state = 0;
        status = scan_state(place, num_states, state);
        while (status == OK && *place.at != '\n') {
            const char* stop = token_end(place.at);
            Index label = whole_number(place.at, stop);
            if (label < 0 || label >= num_labels) {
                status = BAD_LABEL;
            } else {
                masks[label * num_states + state] = 1;
                place.at = next_token(stop);
            }
        }
        if (status == OK) leave_line(place);
    }
    *line = place.line;
    return status;
}

// Sets values of shape (states, variables) from lines `state:(value,…)`, and which states have had one.
// kinds: what each variable is, once it is known. Returns a status; line: within the text.
extern "C" std::int64_t pg_scan_states(
    const char* text, std::int64_t size, std::int64_t num_states, std::int64_t num_variables,
    std::int32_t* values, std::int8_t* kinds, std::uint8_t* seen, std::int64_t* line) {
    Place place{text, 0};
    Status status = OK;
    while (status == OK && next_line(place, text + size)) {
        Index state = 0;
        status = scan_state(place, num_states, state);
        if (status == OK && seen[state]) status = REPEATED;
        if (status != OK) break;
        seen[state] = 1;
        status = scan_values(place, num_variables, values + state * num_variables, kinds);
        if (status == OK) leave_line(place);
    }
    *line = place.line;
    return status;
}
