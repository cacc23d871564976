// Tests which tasks a cancel rule covers, and where tags are found in a stored envelope.
import { defineTask } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { CancelFilter } from '../ports/broker/cancelling.ts'
import { groupIn, matches, tagsOf } from './cancel-filter.ts'
import { storedEnvelope } from './envelope.ts'
import { newTask } from './new-task.ts'

const rule: CancelFilter = { queue: 'q', before: 1_000, reason: 'cancelled' }
const task = { task: 'a.b', tags: ['x', 'y'], enqueuedAt: 1_000 }

describe('a cancel rule', () => {
  it.each([
    [{}, {}, true],
    [{}, { enqueuedAt: 999 }, true],
    [{}, { enqueuedAt: 1_001 }, false],
    [{ task: 'a.b' }, {}, true],
    [{ task: 'a.c' }, {}, false],
    [{ tag: 'y' }, {}, true],
    [{ tag: 'z' }, {}, false],
    [{ tag: 'x' }, { tags: [] }, false],
    [{ task: 'a.b', tag: 'x' }, {}, true],
    [{ task: 'a.c', tag: 'x' }, {}, false],
    [{ task: 'a.b', tag: 'x' }, { enqueuedAt: 1_001 }, false],
    [{ group: 'g' }, {}, false],
    [{ group: 'g' }, { group: { id: 'h' } }, false],
    [{ group: 'g' }, { group: { id: 'g' } }, true],
    [{ group: 'g', tag: 'z' }, { group: { id: 'g' } }, false],
  ])('%j covers a task that is %j: %s', (more, is, covered) => {
    expect(matches({ ...rule, ...more }, { ...task, ...is })).toBe(covered)
  })
})

describe('tags', () => {
  const definition = defineTask({ name: 'a.b', queue: 'q', input: z.unknown(), output: z.unknown() })
  const origin = { id: createTaskId('q', 1, new Uint8Array(10)), enqueuedAt: 1, correlationId: undefined }
  const envelope = (tags?: string[]) =>
    storedEnvelope(newTask(definition, {}, tags === undefined ? {} : { tags }, origin))

  it('stand in the envelope before the input, where a script finds them without reading that', () => {
    expect(JSON.stringify(envelope(['x', 'y']))).toMatch(/^\{"v":2,"version":1,"tags":\["x","y"\],"input":/)
    expect(tagsOf(envelope(['x', 'y']))).toEqual(['x', 'y'])
  })

  it.each([[undefined], [[]]])('that are %j are not stored', (tags) => {
    expect(envelope(tags)).not.toHaveProperty('tags')
  })

  it.each([undefined, null, 7, 'tags', {}, { tags: 7 }, envelope()])('are none in %j', (stored) => {
    expect(tagsOf(stored)).toEqual([])
  })
})

describe('the group of a stored task', () => {
  it('is read from its envelope', () => {
    expect(groupIn({ v: 2, group: { id: 'g', member: 3 } })).toEqual({ id: 'g' })
  })

  it.each([undefined, null, 7, {}, { group: null }, { group: 'g' }, { group: {} }, { group: { id: 7 } }])(
    'is undefined for %j',
    (stored) => {
      expect(groupIn(stored)).toBeUndefined()
    },
  )
})
