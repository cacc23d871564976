// The drills by name.
import { block } from './block.ts'
import { cancel } from './cancel.ts'
import { clocks } from './clocks.ts'
import { containers } from './containers.ts'
import { cutoff } from './cutoff.ts'
import type { Drill } from './drill.ts'
import { kill } from './kill.ts'
import { receipts } from './receipts.ts'
import { deploy, long } from './rolling.ts'

const named = (drills: readonly Drill[]): ReadonlyMap<string, Drill> =>
  new Map(drills.map((drill) => [drill.name, drill]))

export const DRILLS = named([kill, deploy, long, cutoff, block, clocks, cancel, receipts])

/** They need more than this repository and a Redis: a Docker engine. `all` leaves them out. */
export const APART = named([containers])
