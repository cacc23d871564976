// Lists the drills by name.

import type { Drill } from './drill.ts'
import { full } from './drills/admission/full.ts'
import { idempotent } from './drills/admission/idempotent.ts'
import { limit } from './drills/admission/limit.ts'
import { autoscale } from './drills/autoscale.ts'
import { cancel } from './drills/cancel.ts'
import { compensation } from './drills/compensation.ts'
import { cutover } from './drills/cutover.ts'
import { containers } from './drills/deploys/containers.ts'
import { receipts } from './drills/deploys/receipts.ts'
import { deploy, long } from './drills/deploys/rolling.ts'
import { exactness } from './drills/exactness.ts'
import { fairness } from './drills/fairness.ts'
import { block } from './drills/faults/block.ts'
import { clocks } from './drills/faults/clocks.ts'
import { cutoff } from './drills/faults/cutoff.ts'
import { failover } from './drills/faults/failover.ts'
import { kill, killCluster } from './drills/faults/kill.ts'
import { leader } from './drills/faults/leader.ts'
import { outage } from './drills/faults/outage.ts'
import { poison } from './drills/faults/poison.ts'
import { silent } from './drills/faults/silent.ts'
import { followup, followupCluster } from './drills/followup.ts'
import { group, groupCluster } from './drills/group.ts'
import { pipeline } from './drills/pipeline.ts'
import { retryDead } from './drills/retry-dead.ts'
import { schedule } from './drills/schedule.ts'
import { stuck } from './drills/stuck.ts'

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
  failover,
  silent,
  schedule,
  poison,
  retryDead,
  group,
  groupCluster,
  compensation,
  followup,
  followupCluster,
  pipeline,
  fairness,
  exactness,
  autoscale,
  stuck,
  cutover,
])

/** Drills that need a Docker engine. They are not part of `all`. */
export const DOCKER_DRILLS = named([containers])
