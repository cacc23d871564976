// The figures of all drills. Each drill has those of its tasks, and some of the others.
import type { AdmissionFigures } from './admission.ts'
import type { AutoscalingFigures } from './autoscaling.ts'
import type { ConcurrencyKeyFigures } from './concurrency-keys.ts'
import type { DeadTaskFigures } from './dead-tasks.ts'
import type { DeliveryFigures } from './deliveries.ts'
import type { FaultFigures } from './faults.ts'
import type { GroupFigures } from './groups.ts'
import type { PipelineFigures } from './pipelines.ts'
import type { ReplicationFigures } from './replication.ts'
import type { ScheduleFigures } from './schedules.ts'
import type { TaskFigures } from './tasks.ts'

export interface Figures
  extends TaskFigures,
    AdmissionFigures,
    AutoscalingFigures,
    ConcurrencyKeyFigures,
    DeadTaskFigures,
    DeliveryFigures,
    FaultFigures,
    GroupFigures,
    PipelineFigures,
    ReplicationFigures,
    ScheduleFigures {}

/** The figures that are one number. */
export type FigureName = {
  [Name in keyof Figures]-?: number extends Figures[Name] ? Name : never
}[keyof Figures]
