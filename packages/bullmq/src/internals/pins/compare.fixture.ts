// Compares what Bullpen relies on in two versions of BullMQ, and names the files of Bullpen that a difference may break.
import { createHash } from 'node:crypto'
import type { Interior } from './interior.fixture.ts'
import { reliantFiles } from './reliant-files.fixture.ts'

/** The table that is committed: an interior whose texts are replaced by hashes. */
export interface PinnedInterior {
  readonly version: string
  readonly scripts: Readonly<Record<string, { readonly keys: number; readonly text: string }>>
  readonly arguments: Readonly<Record<string, readonly string[]>>
  readonly methods: Readonly<Record<string, string>>
}

export interface Difference {
  readonly kind: 'script' | 'arguments' | 'method'
  /** The script, the call or the method, as it is named in the table. */
  readonly name: string
  /** A sentence that says what changed and where to look. */
  readonly message: string
}

export function pinned({ version, scripts, arguments: sent, methods }: Interior): PinnedInterior {
  return {
    version,
    scripts: mapValues(scripts, ({ keys, text }) => ({ keys, text: hash(text) })),
    arguments: sent,
    methods: mapValues(methods, hash),
  }
}

/** Returns the differences, in the order of the tables. A different version alone does not count. */
export function differences(before: PinnedInterior, after: PinnedInterior): Difference[] {
  return [
    ...changedNames(before.scripts, after.scripts).map((name) => scriptDifference(name, before, after)),
    ...changedNames(before.arguments, after.arguments).map((name) => argumentsDifference(name, before, after)),
    ...changedNames(before.methods, after.methods).map((name) => methodDifference(name, after)),
  ]
}

function scriptDifference(name: string, before: PinnedInterior, after: PinnedInterior): Difference {
  const [old, now] = [before.scripts[name], after.scripts[name]]
  if (old === undefined) {
    const message = `BullMQ has a new script, ${name}; decide in store/bullmq-scripts.ts whether it may run`
    return { kind: 'script', name, message }
  }
  const what =
    now === undefined
      ? `BullMQ's script ${name} no longer exists`
      : old.keys !== now.keys
        ? `BullMQ's script ${name} has ${now.keys} keys instead of ${old.keys}`
        : `the text of BullMQ's script ${name} has changed`
  return { kind: 'script', name, message: `${what}; ${lookAt('script', name)}` }
}

function argumentsDifference(name: string, before: PinnedInterior, after: PinnedInterior): Difference {
  const [old = [], now = []] = [before.arguments[name], after.arguments[name]]
  const changes = Array.from({ length: Math.max(old.length, now.length) }, (_, i) => i)
    .filter((i) => old[i] !== now[i])
    .map((i) => `${i}: ${old[i] ?? 'nothing'} → ${now[i] ?? 'nothing'}`)
  const [script = ''] = name.split(' ')
  const what = `BullMQ sends other keys or arguments to ${name}, by position: ${changes.join('; ')}`
  return { kind: 'arguments', name, message: `${what}; ${lookAt('script', script)}` }
}

function methodDifference(name: string, after: PinnedInterior): Difference {
  const what = after.methods[name] === hash('') ? `${name} no longer exists` : `the text of ${name} has changed`
  return { kind: 'method', name, message: `${what}; ${lookAt('method', name)}` }
}

function lookAt(kind: 'script' | 'method', name: string): string {
  return `look at ${reliantFiles(kind, name).join(', ')}`
}

function changedNames(before: Readonly<Record<string, unknown>>, after: Readonly<Record<string, unknown>>): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
}

/** Returns enough digits of a text's hash that two texts do not share them by accident. */
function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

function mapValues<From, To>(from: Readonly<Record<string, From>>, map: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(from).map(([name, value]) => [name, map(value)]))
}
