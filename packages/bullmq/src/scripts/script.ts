// Runs Lua scripts. Each script names its keys and arguments. A connection sends its text once, and then only its hash. If Redis has lost
// the script (SCRIPT FLUSH, a restart), the text is sent again.
import type { RedisClient } from 'bullmq'
import type { ChainableCommander, Cluster, Redis } from 'ioredis'
import { type Includes, withIncludes } from './includes.ts'

/** A client for a single server, or for a cluster, in which case it has a connection to each node that it uses. */
export type Commander = Redis | Cluster

/**
 * - `frees`: fetches, ends, requeues, renews, cancels or controls, which eventually frees memory. Redis runs the script even at
 *   `maxmemory` (`allow-oom`). Without that flag, Redis would refuse the whole script, whatever it writes.
 * - `adds`: stores something new. At `maxmemory`, Redis refuses the script before it has written anything.
 * - `reads`: writes nothing (`no-writes`), so that it also runs on a replica.
 */
export type ScriptKind = 'frees' | 'adds' | 'reads'

const FLAGS: Readonly<Record<ScriptKind, string>> = {
  frees: ' flags=allow-oom',
  adds: '',
  reads: ' flags=no-writes',
}

export interface Script<Key extends string, Arg extends string, Answer> {
  /** The name of the script's command on the connection. */
  readonly name: string
  readonly numberOfKeys: number
  /** The whole text, which begins with `#!lua`. */
  readonly lua: string
  readonly keys: readonly Key[]
  readonly args: readonly Arg[]
  /** Returns Redis's reply with its type. */
  readonly answer: (reply: unknown) => Answer
}

/**
 * Returns a script that a `.lua` file holds (../store/scripts.ts). The file's header states the type of Redis's reply. The first line,
 * `#!lua`, makes a Redis Cluster refuse a script that touches a second hash slot. A single Redis server does not check.
 */
export function luaScript<Key extends string, Arg extends string, Answer>(
  source: Pick<Script<Key, Arg, Answer>, 'name' | 'keys' | 'args' | 'lua'> & { readonly includes: Includes },
): Script<Key, Arg, Answer> {
  const { name, keys, args } = source
  let whole: string | undefined
  return {
    ...{ name: `bullpen:${name}`, numberOfKeys: keys.length, keys, args },
    // Few processes send every script.
    get lua() {
      whole ??= withIncludes(source.lua, source.includes)
      return whole
    },
    answer: (reply) => reply as Answer,
  }
}

export function shebang(kind: ScriptKind): string {
  return `#!lua${FLAGS[kind]}`
}

type Values<Name extends string, Value> = Readonly<Record<Name, Value>>

/**
 * Runs a script atomically. Takes one round trip, or two if Redis has lost the script. `more` contains the arguments after the
 * named ones.
 */
export async function runScript<Key extends string, Arg extends string, Answer>(
  redis: Commander,
  script: Script<Key, Arg, Answer>,
  keys: Values<Key, string>,
  args: Values<Arg, string | number>,
  more: readonly Argument[] = [],
): Promise<Answer> {
  return script.answer(await commandOf(redis, script)(flatten(script, keys, args, more)))
}

/**
 * Works like {@link runScript}, but always sends the script's text. If only its hash were sent and Redis did not know the script, the
 * call would be sent again, behind the calls that followed it.
 */
export async function runScriptInOrder<Key extends string, Arg extends string, Answer>(
  redis: Commander,
  script: Script<Key, Arg, Answer>,
  keys: Values<Key, string>,
  args: Values<Arg, string | number>,
): Promise<Answer> {
  return script.answer(await redis.eval(script.lua, script.numberOfKeys, ...flatten(script, keys, args, [])))
}

/** Runs scripts on one connection, as {@link runScript} does. */
export type ScriptRunner = <Key extends string, Arg extends string, Answer>(
  script: Script<Key, Arg, Answer>,
  keys: Values<Key, string>,
  args: Values<Arg, string | number>,
  more?: readonly Argument[],
) => Promise<Answer>

/** Returns a function that runs scripts on this connection. */
export const runnerOn =
  (redis: Commander): ScriptRunner =>
  (script, keys, args, more) =>
    runScript(redis, script, keys, args, more)

/** Runs a script on one of BullMQ's clients, which may use a library other than ioredis. */
export async function runScriptOnClient<Key extends string, Arg extends string, Answer>(
  client: RedisClient,
  script: Script<Key, Arg, Answer>,
  keys: Values<Key, string>,
  args: Values<Arg, string | number>,
  more: readonly Argument[] = [],
): Promise<Answer> {
  defineOnClient(client, script)
  return script.answer(await client.runCommand(script.name, flatten(script, keys, args, more)))
}

/** Defines a script as a command on one of BullMQ's clients, unless it has the command. */
export function defineOnClient(client: RedisClient, script: DefinedScript): void {
  const { name, numberOfKeys } = script
  const defined = definedOn.get(client) ?? new Set()
  if (defined.has(name)) return
  client.defineCommand(name, { numberOfKeys, lua: script.lua })
  definedOn.set(client, defined.add(name))
}

const definedOn = new WeakMap<RedisClient, Set<string>>()

function flatten<Key extends string, Arg extends string>(
  { keys, args }: Script<Key, Arg, unknown>,
  keyValues: Values<Key, string>,
  argValues: Values<Arg, string | number>,
  more: readonly Argument[],
): Argument[] {
  return [...keys.map((key) => keyValues[key]), ...args.map((arg) => argValues[arg]), ...more]
}

type Argument = string | number | Buffer

type Command = (args: readonly Argument[]) => unknown

/** Defines a script as a command on a client, which then sends its text once for each connection. */
export function defineOn(commander: Pick<Commander, 'defineCommand'>, script: DefinedScript): void {
  const { name, numberOfKeys, lua } = script
  commander.defineCommand(name, { numberOfKeys, lua })
}

type DefinedScript = Pick<Script<string, string, unknown>, 'name' | 'numberOfKeys' | 'lua'>

/** Returns the script's command on a client. The command sends EVALSHA, and EVAL if Redis does not know the script. */
function commandOf(commander: Commander | ChainableCommander, script: DefinedScript): Command {
  const { name } = script
  // ioredis adds defined commands as methods, which its types can't know.
  const commands = commander as unknown as Record<string, Command | undefined> & Pick<Commander, 'defineCommand'>
  if (commands[name] === undefined) defineOn(commands, script)
  return (args) => (commands[name] as Command).call(commands, args)
}
