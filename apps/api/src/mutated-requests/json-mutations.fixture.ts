// Changes JSON values, including to texts that JSON.stringify cannot write, such as numbers that are too large.

const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
const deepObject = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`

/** JSON that a schema or a program is likely not to expect. */
const HOSTILE = [
  'null',
  'true',
  '0',
  '-0',
  '-1',
  '0.5',
  '1e999',
  '-1e999',
  '1e-400',
  '9007199254740993',
  '123456789012345678901234567890123456789012345678901234567890',
  '""',
  '" "',
  '"0"',
  '"none"',
  '"1s"',
  '"99999999999999999d"',
  '"\\u0000"',
  '"\\ud800"',
  '"\u{1f4a9}\u202e\u0301"',
  '"toString"',
  '"__proto__"',
  '"constructor"',
  '"2026-02-30T25:61:61Z"',
  '"+275760-09-13T00:00:00.001Z"',
  '[]',
  '[[]]',
  '[null]',
  '{}',
  '{"toString":1,"valueOf":null,"then":"x","length":-1}',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"a":1,"a":2}',
  '{"":{"":{"":""}}}',
  deep(99),
  deep(101),
  deep(30_000),
  deepObject(101),
  deepObject(20_000),
  `"${'x'.repeat(70_000)}"`,
  `[${'0,'.repeat(20_000)}0]`,
  `{${Array.from({ length: 2_000 }, (_, at) => `"k${at}":0`).join(',')}}`,
] as const

const KEYS = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  '',
  '0',
  '$ref',
  'a/b~c',
  '\u{1f4a9}',
  'task',
  'input',
] as const

/** Stands for JSON text in a value. */
class RawJson {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export function hostileJson(choice: number): unknown {
  return new RawJson(HOSTILE[choice % HOSTILE.length] ?? 'null')
}

/** Replaces, adds or removes one value. `at` selects the place, and `choice` selects the change. */
export function mutateJson(root: unknown, at: number, choice: number): unknown {
  const places = placesIn(root)
  const place = places[at % places.length] ?? []
  const change = Math.floor(choice / HOSTILE.length) % 4
  if (change === 0) return changedAt(root, place, () => [])
  if (change === 1) {
    const key = KEYS[at % KEYS.length] ?? ''
    return changedAt(root, place, (value) => [
      isObject(value) ? { ...value, [`${key}`]: hostileJson(choice) } : [value],
    ])
  }
  return changedAt(root, place, () => [hostileJson(choice)])
}

/** Writes a value as JSON. */
export function jsonText(value: unknown): string {
  if (value instanceof RawJson) return value.text
  if (Array.isArray(value)) return `[${value.map(jsonText).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  return `{${Object.entries(value)
    .map(([key, inner]) => `${JSON.stringify(key)}:${jsonText(inner)}`)
    .join(',')}}`
}

type Path = readonly (string | number)[]

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !(value instanceof RawJson)
}

function placesIn(value: unknown, path: Path = []): readonly Path[] {
  if (!isObject(value)) return [path]
  return [path, ...Object.entries(value).flatMap(([key, inner]) => placesIn(inner, [...path, key]))]
}

/** Returns a copy with another value at the path. `change` returns a list with the new value, or an empty list to remove it. */
function changedAt(value: unknown, [key, ...rest]: Path, change: (value: unknown) => readonly unknown[]): unknown {
  if (key === undefined) return change(value)[0]
  if (!isObject(value)) return value
  const entries = Object.entries(value).flatMap(([name, inner]): [string, unknown][] => {
    if (name !== key) return [[name, inner]]
    if (rest.length > 0) return [[name, changedAt(inner, rest, change)]]
    return change(inner).map((changed) => [name, changed])
  })
  return Array.isArray(value) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries)
}
