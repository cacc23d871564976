// Tests the stored form of a status: nothing is lost, and it is small.
import type { WorkerStatus } from '@bullpen/engine'
import { describe, expect, it } from 'vitest'
import { pool, status } from './fleet.fixture.ts'
import { decodeStatus, encodeStatus } from './status-codec.ts'

const STARTED_AT = 1_700_000_000_000

function idle(worker: number): WorkerStatus {
  return { worker, state: 'IDLE', since: STARTED_AT + 86_400_000 + worker, task: undefined }
}

function working(worker: number): WorkerStatus {
  const task = {
    id: `cpu-01m7wp3gsny144pgm984ev${worker}`,
    task: 'cpu.hash',
    start: 2,
    endsBy: STARTED_AT + 90_000_000,
  }
  return { ...idle(worker), state: 'WORKING', task: worker % 2 === 0 ? task : { ...task, endsBy: undefined } }
}

describe('the stored form of a status', () => {
  const full = status('host:1:abc', [
    pool('cpu', [idle(1), working(2), working(3)]),
    { ...pool('io'), notReady: 'why' },
  ])

  it('gives back what was told', () => {
    const { about, workers } = encodeStatus(full)
    expect(decodeStatus(about, workers)).toEqual(full)
  })

  it('gives pools without their workers where those are not asked for', () => {
    expect(decodeStatus(encodeStatus(full).about)).toEqual({
      ...full,
      pools: full.pools.map((each) => ({ ...each, workers: [] })),
    })
  })

  it('takes less than 20 bytes for an idle worker, and less than 70 for one that works', () => {
    const bytes = (make: (worker: number) => WorkerStatus): number => {
      const workers = Array.from({ length: 10_000 }, (_, i) => make(i + 1))
      return encodeStatus(status('p', [pool('cpu', workers)])).workers.length
    }
    expect(bytes(idle)).toBeLessThan(200_000)
    expect(bytes(working)).toBeLessThan(700_000)
  })
})
