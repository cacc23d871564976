// Sees which of Bullpen's scripts this process sends, and sends each of them twice on request, as a client does that got no reply.
import { hash } from 'node:crypto'
import { Command, Redis } from 'ioredis'
import { ownScripts } from '../../scripts/all-scripts.fixture.ts'

export interface SentScripts {
  /** The operations that have sent each script, by the name of the script. */
  readonly senders: ReadonlyMap<string, ReadonlySet<string>>
  /** What is sent from now on belongs to this operation. With `twice`, each script is sent twice, and only its second reply is read. */
  begin(operation: string, twice: boolean): void
  close(): void
}

type Send = (this: Redis, command: Command, ...rest: unknown[]) => unknown

export function watchScripts(): SentScripts {
  const names = new Map(
    ownScripts.flatMap(({ name, lua }) =>
      [lua, hash('sha1', lua)].map((text) => [text, name.replace('bullpen:', '')] as const),
    ),
  )
  const senders = new Map<string, Set<string>>()
  const connection = Redis.prototype as unknown as { sendCommand: Send }
  const send = connection.sendCommand
  let operation = 'open'
  let isTwice = false

  connection.sendCommand = function (command, ...rest) {
    const name = names.get(scriptIn(command) ?? '')
    if (name !== undefined) {
      const known = senders.get(name) ?? new Set()
      senders.set(name, known.add(operation))
      // The commands of a transaction are sent together with it.
      if (isTwice && rest[0] === undefined && !isUnmarked(name, command))
        (send.call(this, copyOf(command)) as Promise<unknown>).catch(() => {})
    }
    return send.call(this, command, ...rest)
  }
  return {
    senders,
    begin(name, twice) {
      operation = name
      isTwice = twice
    },
    close() {
      connection.sendCommand = send
    },
  }
}

/** A team's own Worker marks no repeat, so a start whose reply is lost leaves a task that returns when its lock expires. */
const isUnmarked = (name: string, { args }: Command): boolean => name === 'end-and-start' && args.length > 0

const HASH_IN_BYTES = /^\*\d+\r\n\$7\r\nEVALSHA\r\n\$40\r\n([0-9a-f]{40})/

/** Returns the text or the hash of the script that a command runs. */
function scriptIn(command: Command): string | undefined {
  if (command.name !== 'evalsha' && command.name !== 'eval') return undefined
  const [first] = command.args
  if (first !== undefined) return String(first)
  return HASH_IN_BYTES.exec(encodedIn(command)?.toString('latin1', 0, 80) ?? '')?.[1]
}

/** Returns a copy of the command. If the command marks possible repeats (../../redis/script-calls.ts), it is marked itself then. */
function copyOf(command: Command): Command {
  const options = { replyEncoding: 'utf8' } as const
  if (command.args.length > 0) return new Command(command.name, [...command.args], options)
  const bytes = command.toWritable(NO_SOCKET)
  return Object.assign(new Command(command.name, [], options), { toWritable: () => bytes })
}

const NO_SOCKET = {}

/** Returns the bytes of a command that is already encoded and has no arguments any more, without counting that as sending it. */
function encodedIn(command: Command): Buffer | undefined {
  for (let found = prototypeOf(command); found !== null; found = prototypeOf(found)) {
    if (prototypeOf(found) === Command.prototype)
      return (found as Command).toWritable.call(command, NO_SOCKET) as Buffer
  }
  return undefined
}

const prototypeOf = (value: object): object | null => Object.getPrototypeOf(value) as object | null
