// Defines Lua scripts and runs them. A script names its keys and arguments. Redis gets its text once and then only its hash.
import type { ChainableCommander, Cluster, Redis } from 'ioredis'

export type Commander = Redis | Cluster

/**
 * - `frees`: fetches, ends, requeues, renews or cancels, which frees memory in the end. Redis runs the script even at `maxmemory`
 *   (`allow-oom`), since it would otherwise refuse the whole script, whatever it writes.
 * - `adds`: what stores something new. At `maxmemory`, Redis refuses it before it has written anything.
 * - `reads`: writes nothing (`no-writes`), so that it also runs on a replica.
 */
export type ScriptKind = 'frees' | 'adds' | 'reads'

const FLAGS: Readonly<Record<ScriptKind, string>> = {
  frees: ' flags=allow-oom',
  adds: '',
  reads: ' flags=no-writes',
}

export interface Script<Key extends string, Arg extends string> {
  /** The command's name on the connection. */
  readonly name: string
  readonly numberOfKeys: number
  /** The whole text, which begins with `#!lua`. */
  readonly lua: string
  readonly keys: readonly Key[]
  readonly args: readonly Arg[]
}

export interface ScriptSource<Key extends string, Arg extends string> {
  /** In kebab case, as its file. */
  readonly name: string
  readonly kind: ScriptKind
  /** The names of the keys, which are local variables of the script, in this order. All keys of a call share a hash slot. */
  readonly keys: readonly Key[]
  /** The names of the arguments, which are local variables of the script. Further arguments are in `ARGV`, after these. */
  readonly args: readonly Arg[]
  readonly lua: string
}

/**
 * The first line, `#!lua`, makes a Redis Cluster refuse a script that touches a second hash slot. A single Redis does not check.
 */
export function defineScript<const Key extends string, const Arg extends string>(
  source: ScriptSource<Key, Arg>,
): Script<Key, Arg> {
  const { name, kind, keys, args, lua } = source
  const locals = [...declare(keys, 'KEYS'), ...declare(args, 'ARGV')].join('\n')
  return { name: `bullpen:${name}`, numberOfKeys: keys.length, keys, args, lua: `${shebang(kind)}\n${locals}\n${lua}` }
}

export function shebang(kind: ScriptKind): string {
  return `#!lua${FLAGS[kind]}`
}

function declare(names: readonly string[], table: 'KEYS' | 'ARGV'): string[] {
  if (names.length === 0) return []
  return [`local ${names.join(', ')} = ${names.map((_, i) => `${table}[${i + 1}]`).join(', ')}`]
}

type Values<Name extends string, Value> = Readonly<Record<Name, Value>>

/**
 * Runs a script: one round trip, and a second one if Redis does not know the script yet. Atomic. `more` are the arguments after the
 * named ones.
 */
export function runScript<Key extends string, Arg extends string>(
  redis: Commander,
  script: Script<Key, Arg>,
  keys: Values<Key, string>,
  args: Values<Arg, string | number>,
  more: readonly (string | number)[] = [],
): Promise<unknown> {
  return commandOf(redis, script)(flatten(script, keys, args, more)) as Promise<unknown>
}

/** Adds a script to a pipeline or transaction of `redis`. */
export function addScript<Key extends string, Arg extends string>(
  redis: Commander,
  pipeline: ChainableCommander,
  script: Script<Key, Arg>,
  keys: Values<Key, string>,
  args: Values<Arg, string | number>,
  more: readonly (string | number)[] = [],
): void {
  commandOf(redis, script)
  commandOf(pipeline, script)(flatten(script, keys, args, more))
}

function flatten<Key extends string, Arg extends string>(
  { keys, args }: Script<Key, Arg>,
  keyValues: Values<Key, string>,
  argValues: Values<Arg, string | number>,
  more: readonly (string | number)[],
): (string | number)[] {
  return [...keys.map((key) => keyValues[key]), ...args.map((arg) => argValues[arg]), ...more]
}

type Command = (args: readonly (string | number)[]) => unknown

/** A defined command sends EVALSHA, and EVAL if Redis does not know the script. */
function commandOf(
  commander: Commander | ChainableCommander,
  { name, numberOfKeys, lua }: Pick<Script<string, string>, 'name' | 'numberOfKeys' | 'lua'>,
): Command {
  // ioredis adds defined commands as methods, which its types can't know.
  const commands = commander as unknown as Record<string, Command | undefined> & Pick<Commander, 'defineCommand'>
  if (commands[name] === undefined) commands.defineCommand(name, { numberOfKeys, lua })
  return (args) => (commands[name] as Command).call(commands, args)
}
