// Defines scripts whose Lua is a part of a test.
import { type Script, type ScriptKind, shebang } from './script.ts'

interface ScriptSource<Key extends string, Arg extends string, Answer> {
  readonly name: string
  readonly kind: ScriptKind
  /** The names of the keys, which are local variables of the script, in this order. */
  readonly keys: readonly Key[]
  /** The names of the arguments, which are local variables of the script. Further arguments are in `ARGV`, after these. */
  readonly args: readonly Arg[]
  readonly lua: string
  /** Converts Redis's reply to the script's result. Without it, the script has no result. */
  readonly answer?: (reply: unknown) => Answer
}

export function defineScript<const Key extends string, const Arg extends string, Answer = void>(
  source: ScriptSource<Key, Arg, Answer>,
): Script<Key, Arg, Answer> {
  const { name, kind, keys, args, lua } = source
  // Without `answer`, `Answer` is void.
  const { answer = () => undefined as Answer } = source
  const locals = [...declare(keys, 'KEYS'), ...declare(args, 'ARGV')].join('\n')
  const text = `${shebang(kind)}\n${locals}\n${lua}`
  return { name: `bullpen:${name}`, numberOfKeys: keys.length, keys, args, lua: text, answer }
}

function declare(names: readonly string[], table: 'KEYS' | 'ARGV'): string[] {
  if (names.length === 0) return []
  return [`local ${names.join(', ')} = ${names.map((_, i) => `${table}[${i + 1}]`).join(', ')}`]
}
