// Prepares a client together with the clients that it is duplicated to. BullMQ duplicates a Worker's connection for its blocking reads.
import type { Commander } from './script.ts'

/** Calls `prepare` with the client now, and later with each of its duplicates and theirs. Returns the client. */
export function withDuplicates<Client extends Commander>(client: Client, prepare: (client: Commander) => void): Client {
  prepare(client)
  const duplicated = client as { duplicate: (...args: readonly unknown[]) => Commander }
  const duplicate = duplicated.duplicate.bind(client)
  duplicated.duplicate = (...args) => withDuplicates(duplicate(...args), prepare)
  return client
}
