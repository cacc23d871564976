// The state diagrams of ARCHITECTURE.md are those of the tables that the engine obeys.
import { describe, expect, it } from 'vitest'
import { ATTEMPT_TRANSITIONS } from '../packages/engine/src/attempt/attempt-machine.ts'
import { POOL_TRANSITIONS } from '../packages/engine/src/pool/pool-machine.ts'
import { SLOT_TRANSITIONS } from '../packages/engine/src/pool/slot-machine.ts'
import type { Transitions } from '../packages/engine/src/pool/state-machine.ts'
import { section } from './markdown-tables.ts'

const MACHINES: readonly [heading: string, table: Transitions<string>][] = [
  ['An attempt', ATTEMPT_TRANSITIONS],
  ['A worker', SLOT_TRANSITIONS],
  ['A pool', POOL_TRANSITIONS],
]

/** `A --> B` for each arrow; the beginning and the ends are `[*]`. */
function arrowsOf(table: Transitions<string>): string[] {
  return Object.entries(table).flatMap(([from, followers]) =>
    followers.length === 0 ? [`${from} --> [*]`] : followers.map((to) => `${from} --> ${to}`),
  )
}

describe('ARCHITECTURE.md', () => {
  it.each(MACHINES)('draws the machine under "%s" with every transition, and no other', (heading, table) => {
    const drawn = section('../ARCHITECTURE.md', heading).match(/^ *\S+ --> \S+/gm) ?? []
    expect(drawn.map((arrow) => arrow.trim()).sort()).toEqual(['[*] --> NEW', ...arrowsOf(table)].sort())
  })
})
