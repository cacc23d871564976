// Implements the requests that list, store and control schedules, on any broker's store.
//
// Each request reads the schedule, decides, and writes it unless another process has written it in the meantime. In that case, the
// request starts again. Concurrent requests and ticks therefore never overwrite each other.
import { BullpenError, type ScheduleDefinition, type TaskId } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES, suggestion } from '@bullpen/contract/internal'
import type { NewTask } from '../ports/broker/new-task.ts'
import {
  newToken,
  type ScheduleState,
  type ScheduleStore,
  type Schedules,
  type ScheduleWrite,
  type StoredSchedule,
} from '../ports/broker/schedules.ts'
import { hex, type Sha256 } from '../task/digest.ts'
import { type Edition, isToStore, newestEdition } from './editions.ts'
import { wakeTime, withRun } from './next-step.ts'
import { changedFields, type ScheduleChange, scheduleChanges, sorted } from './schedule-diff.ts'
import {
  changedRecord,
  createdRecord,
  pausedRecord,
  resumedRecord,
  type ScheduleRecord,
  type ScheduleSettings,
  scheduledTask,
  settingsOf,
  type UnreadableInput,
} from './schedule-record.ts'

export interface SchedulesOptions {
  readonly store: ScheduleStore
  /** The queues of this process's catalogue. By default, every queue is. */
  readonly queues?: readonly string[] | undefined
  readonly randomBytes: (size: number) => Uint8Array
  readonly sha256: Sha256
  /** Called after each change that may make a schedule due earlier. The callback must not throw or block. */
  readonly onChanged: (queue: string) => void
}

/** What a request does to a schedule. Undefined deletes it. */
interface Change {
  readonly record: ScheduleRecord | undefined
  readonly add?: NewTask
}

export function createSchedules({ store, queues, randomBytes, sha256, onChanged }: SchedulesOptions): Schedules {
  const stored = async (name: string): Promise<StoredSchedule | undefined> =>
    (await store.all()).find(({ record }) => record.name === name)

  const erase = (of: Pick<ScheduleWrite, 'queue' | 'name' | 'expected'>): Promise<unknown> =>
    store.write({ ...of, token: newToken(randomBytes), record: undefined, wakeAt: undefined })

  /** Changes an existing schedule, and returns it as it is afterwards. */
  const change = async (name: string, decide: (found: StoredSchedule) => Change): Promise<ScheduleState> => {
    for (;;) {
      const all = await store.all()
      const found = all.find(({ record }) => record.name === name)
      if (found === undefined) throw notFound(name, all)
      const { record, add } = decide(found)
      if (record === found.record) return found
      const { queue } = found.record
      const write = {
        queue,
        name,
        expected: found.token,
        token: newToken(randomBytes),
        record,
        wakeAt: record && wakeTime(record, found.lastStatus, found.now),
      }
      const result = await store.write({ ...write, add })
      if (result === 'draining') {
        throw new BullpenError('queue_draining', `queue '${queue}' is draining; resume it before you run the schedule`)
      }
      if (result !== 'written') continue
      onChanged(queue)
      return {
        record: record ?? found.record,
        now: found.now,
        lastStatus: add === undefined ? found.lastStatus : 'waiting',
      }
    }
  }

  const put = async (
    settings: ScheduleSettings,
    options: { readonly source: ScheduleRecord['source']; readonly by: string },
  ): ReturnType<Schedules['put']> => {
    const { name, queue } = settings
    for (;;) {
      const all = await store.all()
      const other = all.find(({ record }) => record.name === name && record.queue !== queue)
      if (other !== undefined) throw nameTaken(name, other.record.queue)
      const found = all.find(({ record }) => record.name === name)
      const now = found?.now ?? (await store.now(queue))
      const author = { ...options, now }
      if (found !== undefined && changedFields(found.record, settings).length === 0) {
        const isAdopted = found.record.source !== 'catalogue' && options.source === 'catalogue'
        if (!isAdopted) return { action: 'unchanged', state: found }
      }
      const record =
        found === undefined ? createdRecord(settings, author) : changedRecord(found.record, settings, author)
      const state = { record, now, lastStatus: found?.lastStatus }
      const written = {
        queue,
        name,
        token: newToken(randomBytes),
        record,
        wakeAt: wakeTime(record, state.lastStatus, now),
      }
      if ((await store.write({ ...written, expected: found?.token })) !== 'written') continue
      if (found === undefined) await refuseIfTaken(written)
      onChanged(queue)
      return { action: found === undefined ? 'created' : 'changed', state }
    }
  }

  /**
   * Deletes a schedule that was just created if another queue has one with the same name. Queues may be on different servers, so no
   * single script can check that the name is free in all queues.
   */
  const refuseIfTaken = async ({
    queue,
    name,
    token,
  }: Pick<ScheduleWrite, 'queue' | 'name' | 'token'>): Promise<void> => {
    const other = (await store.all()).find(({ record }) => record.name === name && record.queue !== queue)
    if (other === undefined) return
    await erase({ queue, name, expected: token })
    throw nameTaken(name, other.record.queue)
  }

  const remove = async (name: string, inQueue?: string): Promise<void> => {
    for (;;) {
      const found = (await store.all()).filter(({ record }) => record.name === name)
      const target = found.find(({ record }) => inQueue === undefined || record.queue === inQueue)
      if (target === undefined) return
      const { queue } = target.record
      await erase({ queue, name, expected: target.token })
    }
  }

  const editionOf = (settings: ScheduleSettings): Edition => {
    const digest = sha256(JSON.stringify(sorted(settings))).subarray(0, DIGEST_BYTES)
    return { name: settings.name, digest: hex(digest) }
  }

  /** Stores a schedule of a catalogue, which may have been in another queue. Leaves one alone that only a request has stored. */
  const storeOwn = async (
    settings: ScheduleSettings,
    by: string,
  ): Promise<Pick<ScheduleChange, 'name' | 'queue' | 'action'> | undefined> => {
    const { name, queue } = settings
    const found = (await store.all()).filter(({ record }) => record.name === name)
    if (found.some(({ record }) => record.source !== 'catalogue')) return undefined
    for (const { record } of found) if (record.queue !== queue) await remove(name, record.queue)
    const { action } = await put(settings, { source: 'catalogue', by })
    return action === 'unchanged' ? undefined : { name, queue, action }
  }

  /**
   * Notes the definition that counts as stored, before a request changes or deletes it. A process that stored it and could not note that
   * would store it again afterwards.
   */
  const noteStored = async (name: string): Promise<void> => {
    const digest = newestEdition(await store.declare([]), name)
    if (digest !== undefined) await store.stored({ name, digest })
  }

  return {
    async declare(definitions, { by }) {
      const own = definitions.map((definition) => {
        const settings = settingsOf(definition)
        return { settings, edition: editionOf(settings) }
      })
      const known = await store.declare(own.map(({ edition }) => edition))
      const changes = []
      for (const { settings, edition } of own) {
        if (!isToStore(known, edition)) continue
        const change = await storeOwn(settings, by)
        await store.stored(edition)
        if (change !== undefined) changes.push(change)
      }
      return changes
    },

    async list() {
      return (await store.all()).toSorted((a, b) => (a.record.name < b.record.name ? -1 : 1))
    },

    async find(name) {
      const found = await stored(name)
      if (found !== undefined) return found
      throw notFound(name, await store.all())
    },

    async put(definition, options) {
      await noteStored(definition.name)
      return put(settingsOf(definition), options)
    },

    pause: (name, by) => change(name, ({ record, now }) => ({ record: pausedRecord(record, { by, now }) })),

    resume: (name, by) => change(name, ({ record, now }) => ({ record: resumedRecord(record, { by, now }) })),

    async run(name) {
      let id: TaskId | undefined
      const state = await change(name, ({ record, lastStatus, now }) => {
        if (record.unreadableInput !== undefined) throw unreadable(name, record.unreadableInput)
        const created = createTaskId(record.queue, now, randomBytes(ID_RANDOM_BYTES))
        id = created
        const lastRun = { id: created, tick: now, at: now }
        return {
          record: { ...withRun(record, lastStatus), lastRun },
          add: scheduledTask(record, created, now, now),
        }
      })
      // `change` has called the function above at least once.
      return { id: id as TaskId, state }
    },

    async remove(name) {
      const all = await store.all()
      if (all.every(({ record }) => record.name !== name)) throw notFound(name, all)
      await noteStored(name)
      await remove(name)
    },

    troubles: (queue) => store.troubles(queue),

    async sync(definitions: readonly ScheduleDefinition[], { by, dryRun }) {
      const wanted = definitions.map(settingsOf)
      const changes = scheduleChanges(
        wanted,
        (await store.all()).map(({ record }) => record),
        (queue) => queues === undefined || queues.includes(queue),
      )
      if (dryRun) return changes
      for (const { name, queue, action } of changes) {
        if (action === 'deleted') await remove(name, queue)
        const settings = wanted.find((each) => each.name === name && each.queue === queue)
        if (settings !== undefined && (action === 'created' || action === 'changed')) {
          await put(settings, { source: 'catalogue', by })
        }
      }
      return changes
    },
  }
}

const DIGEST_BYTES = 8

function notFound(name: string, all: readonly StoredSchedule[]): BullpenError {
  const known = all.map(({ record }) => record.name)
  return new BullpenError('schedule_not_found', `schedule ${JSON.stringify(name)} not found${suggestion(name, known)}`)
}

function unreadable(name: string, { reason }: UnreadableInput): BullpenError {
  return new BullpenError(
    'unreadable_payload',
    `the input of schedule '${name}' cannot be decoded: ${reason}; give this process the codec that encoded it, or store the schedule again`,
  )
}

function nameTaken(name: string, queue: string): BullpenError {
  return new BullpenError(
    'schedule_name_taken',
    `queue '${queue}' has a schedule named '${name}'; delete that schedule first, or use another name`,
  )
}
