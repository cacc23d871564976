// Submits groups of bookings to an API: each member has a follow-up, and so has each group.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@bullpen/client'
import { followUp, type MemberRequest } from '@bullpen/contract'
import { after, booking, closing } from '../programs/catalogue.ts'

export interface Bookings {
  readonly groups: number
  /** How many members each group has. */
  readonly members: number
  readonly ratePerSecond: number
  /** How long a booking takes. */
  readonly taskMs: number
}

/** One in this many tasks registers a compensation, and every second one of these fails. */
const UNDOING = 10

export interface SubmittedGroup {
  readonly id: string
  /** The ids of the members in order. */
  readonly ids: readonly string[]
}

/** Resolves with the groups when all of them are submitted, at a steady rate. The clients take turns. */
export async function submitSteadily(
  bookings: Bookings,
  clients: readonly Client[],
): Promise<readonly SubmittedGroup[]> {
  const { groups, members, ratePerSecond } = bookings
  const startedAt = performance.now()
  const submitted: Promise<SubmittedGroup>[] = []
  for (let group = 0; group < groups; group++) {
    await sleep(Math.max(0, startedAt + (group * members * 1_000) / ratePerSecond - performance.now()))
    const client = clients[group % clients.length]
    if (client !== undefined) submitted.push(submit(client, group, bookings))
  }
  return Promise.all(submitted)
}

/** Adds the members with two calls, and seals the group with the second. */
async function submit(client: Client, group: number, { members, taskMs }: Bookings): Promise<SubmittedGroup> {
  const { id, addNamed } = await client.createGroup({ onEnd: [followUp(closing, { of: group })] })
  const tasks = Array.from({ length: members }, (_, member) => memberOf(group * members + member, taskMs))
  const half = Math.ceil(members / 2)
  const first = await addNamed(tasks.slice(0, half))
  const rest = await addNamed(tasks.slice(half), { seal: true })
  return { id, ids: [...first.ids, ...rest.ids] }
}

function memberOf(of: number, ms: number): MemberRequest {
  const input = { of, ms, undoes: undoes(of), fails: fails(of) }
  return { task: booking.name, input, onEnd: [followUp(after, { of })] }
}

export function undoes(of: number): boolean {
  return of % UNDOING === 0
}

/** Returns whether the booking with this number fails. Each of these has a compensation. */
export function fails(of: number): boolean {
  return of % (2 * UNDOING) === 0
}
