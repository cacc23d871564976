// The stored form of a worker's status is lossless and small.
import type { SlotStatus } from '@bullpen/engine'
import { describe, expect, it } from 'vitest'
import { pool, status } from './fleet.fixture.ts'
import { decodeStatus, encodeStatus } from './status-codec.ts'

const STARTED_AT = 1_700_000_000_000

function idle(slot: number): SlotStatus {
  return { slot, state: 'IDLE', since: STARTED_AT + 86_400_000 + slot, task: undefined }
}

function working(slot: number): SlotStatus {
  const task = {
    id: `cpu-01m7wp3gsny144pgm984ev${slot}`,
    task: 'cpu.hash',
    fencingToken: 2,
    timeoutAt: STARTED_AT + 90_000_000,
  }
  return { ...idle(slot), state: 'WORKING', task: slot % 2 === 0 ? task : { ...task, timeoutAt: undefined } }
}

describe('the stored form of a status', () => {
  const full = status('host:1:abc', [
    pool('cpu', [idle(1), working(2), working(3)]),
    { ...pool('io'), notReady: 'why' },
  ])

  it('decodes to the status that was encoded', () => {
    const { status, slots } = encodeStatus(full)
    expect(decodeStatus(status, slots)).toEqual(full)
  })

  it('decodes to pools without slots if the slots are not given', () => {
    expect(decodeStatus(encodeStatus(full).status)).toEqual({
      ...full,
      pools: full.pools.map((each) => ({ ...each, slots: [] })),
    })
  })

  it('takes less than 20 bytes for an idle slot, and less than 70 for a working one', () => {
    const bytes = (make: (slot: number) => SlotStatus): number => {
      const slots = Array.from({ length: 10_000 }, (_, i) => make(i + 1))
      return encodeStatus(status('p', [pool('cpu', slots)])).slots.length
    }
    expect(bytes(idle)).toBeLessThan(200_000)
    expect(bytes(working)).toBeLessThan(700_000)
  })
})
