// Implements the client's methods for groups, on any transport.
import type { GroupResults, GroupSettings, MemberRequest, MembersAdded } from '@bullpen/contract'
import { createGroupId, type GroupTransport, ID_RANDOM_BYTES, MAX_MEMBERS_AT_ONCE } from '@bullpen/contract/internal'
import { assertDefinition, assertList, assertTasks, assertText } from '../arguments.ts'
import { followStream } from '../events/followed-stream.ts'
import type { AddOptions, GroupHandle, GroupStreamEvent } from '../group-handle.ts'
import { randomId } from '../random-id.ts'
import type { Repeat } from '../repetition.ts'
import type { Abortable } from '../task-handle.ts'
import { countedFrom } from './counted-from.ts'
import { pollUntilEnded } from './long-poll.ts'

export interface CreateGroupOptions extends GroupSettings, Abortable {
  /**
   * The id of the group, which `createGroupId` of `@bullpen/contract` creates. If a group with this id and the same settings exists, the
   * call returns its handle and changes nothing. Defaults to a new id.
   */
  readonly id?: string
  /** Who creates the group. */
  readonly by?: string
}

export interface GroupCalls {
  /**
   * Creates a group: tasks that are awaited and cancelled together. The group ends once it is sealed and all its members have ended. The
   * call takes two round trips to Redis.
   *
   * @throws ProblemError `invalid_request` if `id` is not a group id, `idempotency_key_reused` if a group with this id has other settings,
   * or others with which an enqueue of the follow-ups is refused.
   * @example
   * const group = await client.createGroup({ onError: 'cancel' })
   * await group.add(resize, images, { seal: true })
   * const { result } = await group.waitUntilEnded({ timeout: '10m' })
   */
  createGroup(options?: CreateGroupOptions): Promise<GroupHandle>
  /** Returns the handle of a group with this id, without a call. */
  group(id: string): GroupHandle
}

function newGroupId(): string {
  return createGroupId(Date.now(), crypto.getRandomValues(new Uint8Array(ID_RANDOM_BYTES)))
}

/** `retryForMs` is how long `repeat` repeats a call. */
export function groupCalls(groups: GroupTransport, repeat: Repeat, retryForMs: number): GroupCalls {
  async function add(
    id: string,
    tasks: readonly MemberRequest[],
    { seal = false, signal }: AddOptions,
  ): Promise<MembersAdded> {
    if (tasks.length === 0) {
      if (seal) await repeat('idempotent', groups.seal(id), signal)
      return { start: 0, count: 0, ids: [] }
    }
    let start: number | undefined
    const ids: string[] = []
    for (let from = 0; from < tasks.length; from += MAX_MEMBERS_AT_ONCE) {
      const some = tasks.slice(from, from + MAX_MEMBERS_AT_ONCE)
      const isLast = from + some.length === tasks.length
      const request = { tasks: some, ...(seal && isLast && { seal }) }
      const added = await repeat('idempotent', groups.add(id, request, randomId()), signal).catch((error: unknown) => {
        throw countedFrom(from, error)
      })
      start ??= added.start
      ids.push(...added.ids)
    }
    return { start: start ?? 0, count: ids.length, ids }
  }

  async function* results(id: string, { from = 0, signal }: Abortable & { readonly from?: number }) {
    for (let next: number | undefined = from; next !== undefined; ) {
      const page: GroupResults = await repeat('look-up', groups.results(id, next), signal)
      yield* page.results
      next = page.next
    }
  }

  function handleOf(id: string): GroupHandle {
    return {
      id,
      async add(definition, inputs, { seal, signal, ...call } = {}) {
        assertDefinition('group().add', definition)
        assertList('group().add', 'inputs', inputs)
        const tasks = inputs.map((input) => ({ task: definition.name, input, ...call }))
        return add(id, tasks, { ...(seal !== undefined && { seal }), ...(signal !== undefined && { signal }) })
      },
      async addNamed(tasks, options = {}) {
        assertTasks('group().addNamed', tasks)
        return add(id, tasks, options)
      },
      seal: ({ signal } = {}) => repeat('idempotent', groups.seal(id), signal),
      cancel: ({ by, signal } = {}) => repeat('idempotent', groups.cancel(id, by), signal),
      describe: ({ signal } = {}) => repeat('look-up', groups.show(id, 0), signal),
      waitUntilEnded(options = {}) {
        const poll = (waitMs: number) => groups.show(id, waitMs)
        return pollUntilEnded('group', id, { repeat, poll, isOver: ({ state }) => state === 'ended' }, options)
      },
      results: (options = {}) => results(id, options),
      events({ signal } = {}) {
        const isLast = ({ type }: { readonly type: string }): boolean => type === 'group_ended'
        const events = followStream(groups.events(id), { signal, retryForMs, isLast })
        return events as AsyncGenerator<GroupStreamEvent, void, void>
      },
    }
  }

  return {
    async createGroup({ signal, id = newGroupId(), ...settings } = {}) {
      assertText('createGroup', 'the id of a group', id)
      const created = await repeat('idempotent', groups.create({ ...settings, id }), signal)
      return handleOf(created.id)
    },
    group(id) {
      assertText('group', 'the id of a group', id)
      return handleOf(id)
    },
  }
}
