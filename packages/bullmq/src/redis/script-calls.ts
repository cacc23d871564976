// Runs one script many times on a producer's or a consumer's connection, and encodes each call in less time than ioredis does.
//
// If any argument of a command is binary, ioredis encodes each argument separately. The scripts that add a task or end an attempt
// take more than twenty arguments, some of which are binary. This module encodes everything between two binary arguments at once.
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
}

/** Takes the script's keys, followed by its arguments. */
export type ScriptCall = (args: readonly ScriptArgument[]) => Promise<unknown>

/**
 * Returns a function that runs this script with EVALSHA. The function leaves the first call on each connection to ioredis, as
 * well as each call whose script Redis has lost, because ioredis sends the script's text if necessary. All calls to a cluster are
 * also left to ioredis, which sends them to the node that has the keys.
 */
export function scriptCall(client: Commander, script: CalledScript): ScriptCall {
  const callWithText = withText(client, script)
  if (isCluster(client)) return callWithText
  const head = ['EVALSHA', hash('sha1', script.lua), script.numberOfKeys]
  let known: Redis['stream'] | undefined
  return (args) => {
    if (client.stream !== known) {
      known = client.stream
      return callWithText(args)
    }
    const reply = client.sendCommand(new EncodedCommand(encodeCommand([...head, ...args]))) as Promise<unknown>
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

function withText(client: Commander, { name }: CalledScript): ScriptCall {
  // ioredis adds defined commands as methods, which its types can't know.
  const commands = client as unknown as Readonly<Record<string, (args: readonly ScriptArgument[]) => Promise<unknown>>>
  return (args) => commands[name]?.(args) as Promise<unknown>
}

const END = '\r\n'

/** Encodes a command in Redis's protocol: the number of arguments, and each argument with its length in bytes. */
export function encodeCommand(args: readonly ScriptArgument[]): Buffer {
  const parts: (string | Buffer)[] = []
  let text = `*${args.length}${END}`
  for (const arg of args) {
    if (Buffer.isBuffer(arg)) {
      parts.push(`${text}$${arg.length}${END}`, arg)
      text = END
    } else {
      const plain = String(arg ?? '')
      text += `$${Buffer.byteLength(plain)}${END}${plain}${END}`
    }
  }
  parts.push(text)
  return join(parts)
}

function join(parts: readonly (string | Buffer)[]): Buffer {
  let length = 0
  for (const part of parts) length += Buffer.byteLength(part)
  const bytes = Buffer.allocUnsafe(length)
  let end = 0
  for (const part of parts) end += typeof part === 'string' ? bytes.write(part, end) : part.copy(bytes, end)
  return bytes
}
