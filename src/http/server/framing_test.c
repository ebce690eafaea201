/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

#include <string.h>

#include "http/server/header.h"
#include "test/tap.h"

#define MAX_HEADER 1024

/* A header as a lenient parser leaves it: in place, with a 0 byte for each blank, colon and end of line. A lone LF ends
 * a line, too.
 */
struct parser {
    struct framing f;
    char text[MAX_HEADER];
};

static char *cut (char *at, char c)
{
    char *end = strchr (at, c);

    *end = '\0';
    return end + 1;
}

static char *cut_line (char *at)
{
    char *end = strchr (at, '\n');

    if (end > at && end[-1] == '\r')
        end[-1] = '\0';
    *end = '\0';
    return end + 1;
}

static void read_fields (struct parser *p, char *at)
{
    while (*at != '\r' && *at != '\n') {
        char *name = at, *value = name;

        at = cut_line (name);
        value = cut (name, ':');
        value += strspn (value, " \t");
        framing_field (&p->f, name, strlen (name), value, strlen (value));
    }
}

/* Returns the status of framing_end (). All other results are in 'p'. */
static unsigned read_header (struct parser *p, const char *header, bool in_place, idt_error_t *errp)
{
    *p = (struct parser){ .text = "" };
    strcpy (p->text, header);
    char *target = cut (p->text, ' '), *version = cut (target, ' '), *fields = cut_line (version);

    framing_target (&p->f, target, strlen (target));
    framing_line (&p->f, p->text, target, strlen (target), version, in_place);
    read_fields (p, fields);
    return framing_end (&p->f, p->text + strlen (header), errp);
}

static unsigned status (const char *header)
{
    struct parser p;
    idt_error_t error = { "" };
    unsigned status = read_header (&p, header, true, &error);

    diag ("%u %s", status, error.text);
    return (status == 0) == (error.text[0] == '\0') ? status : 1;
}

#define LINE "GET /x HTTP/1.1\r\n"
#define HOST "Host: localhost\r\n"

static void test_host (void)
{
    struct parser p;
    idt_error_t error;

    ok (read_header (&p, LINE "X: y\r\nHost: a.b:80 \r\n\r\n", true, &error) == 0 && p.f.host_size == 6
            && strncmp (p.f.host, "a.b:80", 6) == 0,
        "the Host field names the host, without the blanks around it");
    ok (read_header (&p, "GET HTTP://c:1/x HTTP/1.1\r\n" HOST "\r\n", true, &error) == 0 && p.f.host_size == 3
            && strncmp (p.f.host, "c:1", 3) == 0 && p.f.absolute,
        "a whole address in the request line takes precedence over Host");
    ok (status (LINE "\r\n") == 400 && status (LINE HOST HOST "\r\n") == 400 && status ("GET /x HTTP/1.0\r\n\r\n") == 0,
        "HTTP/1.1 needs exactly one Host");
    ok (status (LINE "Host: a/b\r\n\r\n") == 400 && status (LINE "Host: a b\r\n\r\n") == 400
            && status (LINE "Host: a@b\r\n\r\n") == 400 && status (LINE "Host: [::1]:80\r\n\r\n") == 0
            && status ("GET http:///x HTTP/1.1\r\n" HOST "\r\n") == 400
            && status ("GET http://a%20b/ HTTP/1.1\r\n" HOST "\r\n") == 400,
        "the host in a request must be a name or an address");
}

static void test_end (void)
{
    struct parser p;
    idt_error_t error;

    ok (status (LINE HOST "Content-Length: 0\r\n\r\n") == 0 && status (LINE HOST "Content-Length: 3\r\n\r\n") == 400
            && status (LINE HOST "Content-Length: 4097\r\n\r\n") == 413
            && status (LINE HOST "Content-Length: 18446744073709551616\r\n\r\n") == 400,
        "a request of another Content-Length than 0 is refused");
    ok (status (LINE HOST "Content-Length: 0, 0\r\n\r\n") == 400
            && status (LINE HOST "Content-Length: +0\r\n\r\n") == 400
            && status (LINE HOST "Content-Length:\r\n\r\n") == 400
            && status (LINE HOST "Content-Length: 0\r\ncontent-length: 0\r\n\r\n") == 400,
        "the Content-Length of a request must be one number");
    ok (read_header (&p, LINE HOST "Transfer-Encoding:\tChunked\r\n\r\n", true, &error) == 0 && p.f.chunked
            && read_header (&p, LINE HOST "\r\n", true, &error) == 0 && !p.f.chunked,
        "chunked encoding is accepted and reported");
    ok (status (LINE HOST "Transfer-Encoding: gzip\r\n\r\n") == 501
            && status (LINE HOST "Transfer-Encoding: chunked, chunked\r\n\r\n") == 501
            && status ("GET /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n") == 400
            && status (LINE HOST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n") == 400,
        "other transfer codings than chunked are refused, and so are chunks in HTTP/1.0 or together with a "
        "Content-Length");
}

static void test_grammar (void)
{
    ok (status (LINE HOST "X: \xc3\xa4\tb\r\nY:\r\nZ:z\r\n\r\n") == 0,
        "the value of a field may contain letters and tabs, or be empty");
    ok (status (LINE HOST "X : a\r\n\r\n") == 400 && status (LINE HOST ": a\r\n\r\n") == 400
            && status (LINE HOST "X\xa0: a\r\n\r\n") == 400 && status (LINE HOST "X: a\rb\r\n\r\n") == 400
            && status (LINE HOST "X: a\x7f\r\n\r\n") == 400,
        "the names of fields must be tokens, and values must not contain controls");
    ok (status ("G(T /x HTTP/1.1\r\n" HOST "\r\n") == 400 && status ("GET /\x01 HTTP/1.1\r\n" HOST "\r\n") == 400
            && status ("GET /x HTTP/1.1 \r\n" HOST "\r\n") == 400 && status ("GET  /x HTTP/1.1\r\n" HOST "\r\n") == 400,
        "methods must be tokens, targets must not contain controls, and one blank separates them");
}

static void test_who (void)
{
    ok (status (LINE HOST "Origin: http://a\r\nAuthorization: Bearer a\r\nX: b\r\nX: c\r\n\r\n") == 0
            && status (LINE HOST "Origin: http://a\r\norigin: http://b\r\n\r\n") == 400
            && status (LINE HOST "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n") == 400,
        "fields that identify the client must not occur twice");
}

static void test_places (void)
{
    struct parser p;
    idt_error_t error;

    ok (status ("GET /x HTTP/1.1\n" HOST "\r\n") == 400 && status (LINE "Host: localhost\n\r\n") == 400
            && status (LINE HOST "X: a\nY: b\r\n\r\n") == 400 && status (LINE HOST "\n") == 400,
        "each line of a header must end with CRLF");
    ok (read_header (&p, LINE HOST "X: a\nY: b\r\n\r\n", false, &error) == 0
            && read_header (&p, LINE HOST "X: a\rb\r\n\r\n", false, &error) == 400,
        "if the parser checks the ends of lines, only a CR inside of a line is refused");
    p = (struct parser){ .text = "" };
    strcpy (p.text, "A: b");
    p.f.at = p.text;
    framing_field (&p.f, p.text, 1, p.text + 3, 1);
    ok (!p.f.wrong && p.f.at == p.text + 6, "a field ends where the next one begins");
    framing_field (&p.f, p.text + 6, 1, p.text + 5, 1);
    ok (p.f.wrong, "a field whose value does not follow its name is refused");
}

static void test_version (void)
{
    ok (!framing_parser_is_strict ("0.9.71") && !framing_parser_is_strict ("0.9.75")
            && !framing_parser_is_strict ("0.9.77") && !framing_parser_is_strict ("0.9.9")
            && !framing_parser_is_strict ("?"),
        "libmicrohttpd up to 0.9.77 cannot be set to be strict");
    ok (framing_parser_is_strict ("0.9.77.1") && framing_parser_is_strict ("0.9.78")
            && framing_parser_is_strict ("0.10.0") && framing_parser_is_strict ("1.0.1"),
        "libmicrohttpd above 0.9.77 can be set to be strict");
}

int main (void)
{
    test_version ();
    test_host ();
    test_end ();
    test_grammar ();
    test_who ();
    test_places ();
    return done_testing ();
}
