// The drills by name.
import { block } from './block.ts'
import { cancel } from './cancel.ts'
import { clocks } from './clocks.ts'
import { cutoff } from './cutoff.ts'
import type { Drill } from './drill.ts'
import { kill } from './kill.ts'
import { receipts } from './receipts.ts'
import { deploy, long } from './rolling.ts'

export const DRILLS: ReadonlyMap<string, Drill> = new Map(
  [kill, deploy, long, cutoff, block, clocks, cancel, receipts].map((drill) => [drill.name, drill]),
)
