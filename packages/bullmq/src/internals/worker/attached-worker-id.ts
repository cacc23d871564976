// Gives an id to the Workers that run Bullpen's scripts, by which the leader tells their locks from those of other Workers.
//
// BullMQ makes the token of each lock from the id of the Worker, a colon and a number. The ids that BullMQ makes are UUIDs.
import { randomUUID } from 'node:crypto'

/** Returns an id that is no UUID, because it contains a p, and no longer than one, because Redis stores short texts in less memory. */
export function attachedWorkerId(): string {
  return `bp${randomUUID().replaceAll('-', '')}`
}
