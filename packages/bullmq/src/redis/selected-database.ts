// Keeps a client from being used if Redis has refused to select its database. ioredis only reports the refusal, and would send its
// commands to database 0.
import type { Redis } from 'ioredis'

/** ioredis calls `check` before a connection is ready, after the reply to SELECT. If it returns false, ioredis reconnects. */
interface Checked {
  readonly connector: { check: (info: unknown) => boolean }
}

/** Returns the same client, whose ready check must not be off. The clients that it is duplicated to behave in the same way. */
export function requireDatabase(client: Redis): Redis {
  let isRefused = false
  client.on('error', (error) => {
    if (isSelectError(error)) isRefused = true
  })
  const { connector } = client as unknown as Checked
  connector.check = () => {
    const isSelected = !isRefused
    isRefused = false
    return isSelected
  }
  const duplicate = client.duplicate.bind(client)
  client.duplicate = (override) => requireDatabase(duplicate(override))
  return client
}

/** Returns whether Redis has refused to select a database. */
export function isSelectError(error: unknown): boolean {
  const command = error instanceof Error && 'command' in error ? error.command : undefined
  return typeof command === 'object' && command !== null && 'name' in command && command.name === 'select'
}
