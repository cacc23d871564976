// Compares the schedules of a catalogue with the stored ones. Pure.
import type { ScheduleAction } from '@bullpen/contract'
import type { ScheduleRecord, ScheduleSettings } from './schedule-record.ts'

export interface ChangedField {
  readonly field: string
  readonly from: unknown
  readonly to: unknown
}

export interface ScheduleChange {
  readonly name: string
  readonly queue: string
  readonly action: ScheduleAction
  /** The settings that differ. Empty unless the action is `changed`. */
  readonly fields: readonly ChangedField[]
}

/**
 * Returns the changes that make the stored schedules match the catalogue's, in the order in which to make them. Deletions come
 * first, so that a schedule can move to another queue. Stored schedules that did not come from a catalogue are left out, unless the
 * catalogue has one with the same name. So are the schedules of queues that are not the catalogue's (`isOwnQueue`), because they may
 * belong to another catalogue in the same namespace.
 */
export function scheduleChanges(
  wanted: readonly ScheduleSettings[],
  stored: readonly ScheduleRecord[],
  isOwnQueue: (queue: string) => boolean,
): readonly ScheduleChange[] {
  const deleted = stored
    .filter(({ name, queue, source }) => {
      const same = wanted.find((each) => each.name === name)
      return same === undefined ? source === 'catalogue' && isOwnQueue(queue) : same.queue !== queue
    })
    .map(({ name, queue }): ScheduleChange => ({ name, queue, action: 'deleted', fields: [] }))
  const others = wanted.map((settings): ScheduleChange => {
    const { name, queue } = settings
    const record = stored.find((each) => each.name === name && each.queue === queue)
    if (record === undefined) return { name, queue, action: 'created', fields: [] }
    const fields = [...changedFields(record, settings), ...changedSource(record)]
    return { name, queue, action: fields.length === 0 ? 'unchanged' : 'changed', fields }
  })
  return [...deleted, ...others]
}

/**
 * Returns the settings that differ, by the names under which a request or a task's definition gives them. An input that cannot be
 * decoded differs from every input.
 */
export function changedFields(
  from: ScheduleSettings & Pick<ScheduleRecord, 'unreadableInput'>,
  to: ScheduleSettings,
): readonly ChangedField[] {
  const [before, after] = [flat(from), flat(to)]
  const isSame = (field: string): boolean =>
    sameJson(before[field], after[field]) && (field !== 'input' || from.unreadableInput === undefined)
  return [...new Set([...Object.keys(before), ...Object.keys(after), 'input'])].flatMap((field) =>
    isSame(field) ? [] : [{ field, from: before[field], to: after[field] }],
  )
}

/** A schedule that a request has stored becomes the catalogue's. */
function changedSource({ source }: ScheduleRecord): readonly ChangedField[] {
  return source === 'catalogue' ? [] : [{ field: 'source', from: source, to: 'catalogue' }]
}

function flat({ cadence, template, overlap, catchUp, jitterMs, stoppable }: ScheduleSettings): Record<string, unknown> {
  return { ...cadence, overlap, catchUp, jitterMs, ...template, kind: stoppable ? 'long' : 'short' }
}

/**
 * Compares values as they are stored, so the order of an object's fields does not matter, and an undefined field counts as absent.
 */
function sameJson(a: unknown, b: unknown): boolean {
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b))
}

/** Sorts the fields of objects, and leaves out those that JSON does. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Date) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, sorted(each)]),
  )
}
