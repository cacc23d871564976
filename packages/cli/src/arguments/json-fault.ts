// Finds the place where a text stops being JSON; the engine's own messages name it only sometimes.

export interface JsonFault {
  /** From 1, as editors count. */
  readonly line: number
  readonly column: number
  readonly expected: string
  /** Empty at the end of the text. */
  readonly found: string
}

type Expecting = 'value' | 'first element' | 'name' | 'first name' | 'colon' | 'more' | 'end'

const WORDS: Readonly<Record<Expecting, string>> = {
  value: 'a value',
  'first element': "a value or ']'",
  name: 'a name in double quotes',
  'first name': "a name in double quotes or '}'",
  colon: "':'",
  more: "',' or the closing bracket",
  end: 'nothing more',
}

const TOKEN =
  /([{}[\],:])|("(?:[^"\\\p{Cc}]|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/uy
const SPACE = /[ \t\n\r]*/y

/** Undefined when the whole text is one JSON value. */
export function jsonFault(text: string): JsonFault | undefined {
  const open: ('{' | '[')[] = []
  let expecting: Expecting = 'value'
  for (let at = after(SPACE, text, 0); at < text.length || expecting !== 'end'; at = after(SPACE, text, at)) {
    TOKEN.lastIndex = at
    const [token = '', mark, string] = TOKEN.exec(text) ?? []
    const next = step(expecting, mark ?? (string === undefined ? (token === '' ? 'none' : 'scalar') : 'string'), open)
    if (next === undefined) return faultAt(text, at, expecting)
    expecting = next
    at += token.length
  }
  return undefined
}

/** What may follow after this token, or undefined when the token may not stand here. */
function step(expecting: Expecting, token: string, open: ('{' | '[')[]): Expecting | undefined {
  const ended = (): Expecting => (open.length === 0 ? 'end' : 'more')
  const close = (bracket: '{' | '['): Expecting | undefined => {
    if (open.at(-1) !== bracket) return undefined
    open.pop()
    return ended()
  }
  const value = (): Expecting | undefined => {
    if (token === '{' || token === '[') {
      open.push(token)
      return token === '{' ? 'first name' : 'first element'
    }
    return token === 'string' || token === 'scalar' ? ended() : undefined
  }
  switch (expecting) {
    case 'value':
      return value()
    case 'first element':
      return token === ']' ? close('[') : value()
    case 'name':
      return token === 'string' ? 'colon' : undefined
    case 'first name':
      return token === 'string' ? 'colon' : token === '}' ? close('{') : undefined
    case 'colon':
      return token === ':' ? 'value' : undefined
    case 'more':
      if (token === ',') return open.at(-1) === '{' ? 'name' : 'value'
      return token === '}' ? close('{') : token === ']' ? close('[') : undefined
    case 'end':
      return undefined
  }
}

function after(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return at + (pattern.exec(text)?.[0].length ?? 0)
}

function faultAt(text: string, at: number, expecting: Expecting): JsonFault {
  const lines = text.slice(0, at).split('\n')
  const [found = ''] = /^\S{0,12}/u.exec(text.slice(at, at + 24)) ?? []
  return { line: lines.length, column: [...(lines.at(-1) ?? '')].length + 1, expected: WORDS[expecting], found }
}
