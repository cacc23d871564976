// Runs one script many times on a producer's or a consumer's connection, and encodes each call in less time than ioredis does.
//
// If any argument of a command is binary, ioredis encodes each argument separately. The scripts that add a task or end an attempt
// take more than twenty arguments, some of which are binary. This module encodes everything between two binary arguments at once,
// and encodes the keys that all calls for a queue have in common only once.
import { hash } from 'node:crypto'
import { Command, type Redis } from 'ioredis'
import type { Commander } from '../scripts/script.ts'
import { isCluster } from './redis-client.ts'

/** As in ioredis, null and undefined are sent as empty strings. */
export type ScriptArgument = string | number | Buffer | null | undefined

export interface CalledScript {
  /** The name of the script's command, which is defined on the client. */
  readonly name: string
  readonly numberOfKeys: number
  readonly lua: string
  /** Whether a call that may already have reached Redis has one more argument at its end, so that the script can look for its effect. */
  readonly marksRepeats?: boolean
}

/** The argument that marks a call that may be a repeat. */
const MARK = '1'
/** The number of arguments of EVALSHA before the keys, including the command's name. */
const HEAD_LENGTH = 3

/** Takes the script's keys, followed by its arguments. */
export type ScriptCall = (args: readonly ScriptArgument[]) => Promise<unknown>

/**
 * Returns a function that runs this script with EVALSHA. The function leaves the first call on each connection to ioredis, as
 * well as each call whose script Redis has lost, because ioredis sends the script's text if necessary. All calls to a cluster are
 * also left to ioredis, which sends them to the node that has the keys. A call that is left to ioredis is always marked as a
 * possible repeat, because ioredis may send it again without any sign.
 */
export function scriptCall(client: Commander, script: CalledScript): ScriptCall {
  const callWithText = withText(client, script)
  if (isCluster(client)) return callWithText
  const beginningOf = commonBeginnings(['EVALSHA', hash('sha1', script.lua), script.numberOfKeys])
  let known: Redis['stream'] | undefined
  return (args) => {
    if (client.stream !== known) {
      known = client.stream
      return callWithText(args)
    }
    const { text, keys } = beginningOf(args, script.numberOfKeys)
    const bytes = encodeArguments(`*${HEAD_LENGTH + args.length}${END}${text}`, args, keys.length)
    const command = script.marksRepeats ? new MarkedCommand(bytes) : new EncodedCommand(bytes)
    const reply = client.sendCommand(command) as Promise<unknown>
    return reply.catch((error: Error) => {
      if (error.message.startsWith('NOSCRIPT')) return callWithText(args)
      throw error
    })
  }
}

/**
 * A call of EVALSHA that is already encoded. This is a class because V8 keeps the arguments of every call until the next full
 * garbage collection if each command has a method of its own, which cost a producer a third of its CPU time.
 */
class EncodedCommand extends Command {
  readonly #bytes: Buffer

  constructor(bytes: Buffer) {
    super('evalsha', [], { replyEncoding: 'utf8' })
    this.#bytes = bytes
  }

  /** ioredis calls this method again when it sends the command on another connection. */
  override toWritable(): Buffer {
    return this.#bytes
  }
}

/** A call that is marked when it is sent for the second time. */
class MarkedCommand extends EncodedCommand {
  #wasSent = false

  override toWritable(): Buffer {
    const bytes = super.toWritable()
    if (this.#wasSent) return markedCommand(bytes)
    this.#wasSent = true
    return bytes
  }
}

function withText(client: Commander, { name, marksRepeats }: CalledScript): ScriptCall {
  // ioredis adds defined commands as methods, which its types can't know.
  const commands = client as unknown as Readonly<Record<string, (args: readonly ScriptArgument[]) => Promise<unknown>>>
  return (args) => commands[name]?.(marksRepeats ? [...args, MARK] : args) as Promise<unknown>
}

const END = '\r\n'

/** Encodes a command in Redis's protocol: the number of arguments, and each argument with its length in bytes. */
export function encodeCommand(args: readonly ScriptArgument[]): Buffer {
  return encodeArguments(`*${args.length}${END}`, args, 0)
}

/** Appends the encoded arguments, beginning with the one at `from`, to text that is already encoded. */
function encodeArguments(before: string, args: readonly ScriptArgument[], from: number): Buffer {
  const parts: (string | Buffer)[] = []
  let text = before
  for (let i = from; i < args.length; i++) {
    const arg = args[i]
    if (Buffer.isBuffer(arg)) {
      parts.push(`${text}$${arg.length}${END}`, arg)
      text = END
    } else {
      text += encodeText(arg)
    }
  }
  parts.push(text)
  return join(parts)
}

function encodeText(arg: Exclude<ScriptArgument, Buffer>): string {
  const plain = String(arg ?? '')
  return `$${Buffer.byteLength(plain)}${END}${plain}${END}`
}

/** The keys with which all calls so far have begun, and the text that encodes them after the head. */
interface Beginning {
  readonly keys: readonly ScriptArgument[]
  readonly text: string
}

/**
 * Returns a function that returns what a call has in common with all earlier calls for the same queue. The first key identifies
 * the queue. A script whose keys include a job's key has only the keys before it in common.
 */
function commonBeginnings(head: readonly (string | number)[]) {
  const start = head.map(encodeText).join('')
  const byFirstKey = new Map<ScriptArgument, Beginning>()
  return (args: readonly ScriptArgument[], numberOfKeys: number): Beginning => {
    const known = byFirstKey.get(args[0])
    const common = known === undefined ? numberOfKeys : commonLength(known.keys, args)
    if (known !== undefined && common === known.keys.length) return known
    const keys = args.slice(0, common)
    const beginning = { keys, text: start + keys.map((key) => encodeText(key as string)).join('') }
    byFirstKey.set(args[0], beginning)
    return beginning
  }
}

function commonLength(keys: readonly ScriptArgument[], args: readonly ScriptArgument[]): number {
  let length = 0
  while (length < keys.length && keys[length] === args[length]) length++
  return length
}

/** Appends the mark of a repeat to an encoded command, which begins with the number of its arguments. */
export function markedCommand(command: Buffer): Buffer {
  const end = command.indexOf(END)
  const count = Number(command.subarray(1, end).toString())
  return Buffer.concat([Buffer.from(`*${count + 1}`), command.subarray(end), Buffer.from(encodeText(MARK))])
}

function join(parts: readonly (string | Buffer)[]): Buffer {
  let length = 0
  for (const part of parts) length += Buffer.byteLength(part)
  const bytes = Buffer.allocUnsafe(length)
  let end = 0
  for (const part of parts) end += typeof part === 'string' ? bytes.write(part, end) : part.copy(bytes, end)
  return bytes
}
