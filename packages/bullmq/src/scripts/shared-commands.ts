// Shares the definitions of Lua scripts among the clients of a process.
//
// For each client, ioredis hashes the text of each script and creates a class for its calls. Together, BullMQ and Bullpen define
// more than a hundred scripts on each connection, with about 1.5 MB of text. A definition has no state of its client, because
// ioredis notes by socket which texts it has sent. The definition of the first client therefore serves all others.
import type { Redis } from 'ioredis'
import type { Commander } from './script.ts'
import { withDuplicates } from './with-duplicates.ts'

type Definition = Parameters<Redis['defineCommand']>[1]
type Methods = Readonly<Record<string, unknown>>

interface SharedCommand {
  readonly definition: Definition
  /** What the first client's transactions and pipelines look up by the command's name. */
  readonly script: unknown
  /** The methods that ioredis has added to the first client. They use the client on which they are called. */
  readonly methods: Methods
}

const shared = new Map<string, SharedCommand>()

/**
 * Makes the client, and every client that it is duplicated to, take over the commands that another client has already defined with the
 * same text. The client must not have a key prefix, which is a part of a definition.
 */
export function shareCommands<Client extends Commander>(client: Client): Client {
  return withDuplicates(client, share)
}

function share(client: Commander): void {
  const define = client.defineCommand.bind(client)
  const scripts = client.scriptsSet as Record<string, unknown>
  client.defineCommand = (name, definition) => {
    const known = shared.get(name)
    if (known !== undefined && isSame(known.definition, definition)) {
      scripts[name] = known.script
      Object.assign(client, known.methods)
      return
    }
    define(name, definition)
    shared.set(name, { definition, script: scripts[name], methods: methodsOf(client, name) })
  }
}

function isSame(known: Definition, { lua, numberOfKeys, readOnly }: Definition): boolean {
  return known.lua === lua && known.numberOfKeys === numberOfKeys && known.readOnly === readOnly
}

/** Returns the methods that `defineCommand` adds to a client. */
function methodsOf(client: object, name: string): Methods {
  const all = client as Methods
  const binary = `${name}Buffer`
  return { [name]: all[name], [binary]: all[binary] }
}
