// Lists texts for queries and headers that a parser or a program is likely not to expect.

type Texts = readonly [string, ...string[]]

const long = (length: number): string => 'x'.repeat(length)

/** Bytes above 0x7f are sent as Latin-1. */
export const HOSTILE_TEXTS: Texts = [
  '',
  ' ',
  '0',
  '-1',
  '1e9',
  'NaN',
  '99999999999999999999',
  'null',
  '[]',
  '{}',
  '__proto__',
  'constructor',
  '../../etc/passwd',
  '%00',
  '%zz',
  '%C0%AF',
  '%F0%9F%92%A9',
  '\u00ff\u00fe',
  "' OR 1=1 --",
  '*',
  '10s',
  '30s',
  'wait=5',
  long(300),
  long(5_000),
]

const HEADERS: Readonly<Record<string, Texts>> = {
  'Idempotency-Key': [
    '',
    '"',
    '""',
    '"\u00e9"',
    'a b',
    '"a',
    '"a";life=0',
    '"a";life=60',
    '"a";life=99999999999',
    '"a", "b"',
    'a',
    `"${long(255)}"`,
    `"${long(256)}"`,
    long(8_000),
  ],
  Prefer: [
    'wait=1',
    'wait',
    'wait=',
    'wait=-1',
    'wait=999999999',
    'wait=1e5',
    'wait="1',
    ',,;;==',
    'respond-async, wait=0',
    `wait=0;${';'.repeat(5_000)}`,
  ],
  'X-Request-Id': ['\u0001', long(200)],
  traceparent: ['00-00000000000000000000000000000000-0000000000000000-00', 'ff-zz'],
  Authorization: ['Basic YTpi', 'Bearer', `Bearer ${long(4_000)}`],
  Cookie: ['bullpen_session=%zz; __proto__=1; =; ;'],
  Origin: ['https://evil.example'],
  'Sec-Fetch-Site': ['cross-site'],
  Accept: ['text/html;q=x'],
  'Accept-Encoding': ['br;q=2, \u00ff'],
  'If-None-Match': ['"a"'],
  Range: ['bytes=9-1'],
  Expect: ['100-continue', 'the unexpected'],
  Upgrade: ['websocket'],
  Connection: ['upgrade'],
  Host: ['a b/c', 'other.example'],
  'Content-Length': ['-1', '1', '0x10'],
  'Transfer-Encoding': ['gzip', 'chunked, chunked'],
  'X-Forwarded-For': ['127.0.0.1, \u0000'],
  'X-Http-Method-Override': ['DELETE'],
  'X-Huge': [long(20_000)],
  'bad header': ['1'],
  Folded: ['a\r\n b'],
}

export const HOSTILE_HEADERS: readonly (readonly [name: string, value: string])[] = Object.entries(HEADERS).flatMap(
  ([name, values]) => values.map((value) => [name, value] as const),
)

export const CONTENT_TYPES: Texts = [
  '',
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/json; charset=utf-16',
  'application/json;',
  'APPLICATION/JSON',
  'application/json, text/plain',
  'application/problem+json',
  'nonsense',
  long(3_000),
]

export const ENCODINGS: Texts = ['gzip', 'br', 'identity', 'nonsense', '']
