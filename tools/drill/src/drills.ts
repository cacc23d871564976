// Lists the drills by name.

import type { Drill } from './drill.ts'
import { block } from './drills/block.ts'
import { cancel } from './drills/cancel.ts'
import { clocks } from './drills/clocks.ts'
import { containers } from './drills/containers.ts'
import { cutoff } from './drills/cutoff.ts'
import { full } from './drills/full.ts'
import { idempotent } from './drills/idempotent.ts'
import { kill, killCluster } from './drills/kill.ts'
import { leader } from './drills/leader.ts'
import { limit } from './drills/limit.ts'
import { outage } from './drills/outage.ts'
import { poison } from './drills/poison.ts'
import { receipts } from './drills/receipts.ts'
import { retryDead } from './drills/retry-dead.ts'
import { deploy, long } from './drills/rolling.ts'
import { schedule } from './drills/schedule.ts'

const named = (drills: readonly Drill[]): ReadonlyMap<string, Drill> =>
  new Map(drills.map((drill) => [drill.name, drill]))

export const DRILLS = named([
  kill,
  killCluster,
  deploy,
  long,
  cutoff,
  block,
  clocks,
  cancel,
  leader,
  idempotent,
  receipts,
  full,
  limit,
  outage,
  schedule,
  poison,
  retryDead,
])

/** Drills that need a Docker engine. They are not part of `all`. */
export const DOCKER_DRILLS = named([containers])
