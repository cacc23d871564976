// A handler that is not idempotent, beside one that does the same work and is.
import type { InterruptionKind } from '../interruption.ts'
import type { Simulation } from '../report.ts'

export interface PlantedFault {
  readonly name: string
  readonly faulty: () => Promise<Simulation>
  readonly idempotent: (options?: { readonly pairs: boolean }) => Promise<Simulation>
  /** The faults of the first handler, with every kind of interruption that shows them. */
  readonly faults: readonly {
    readonly kind: Simulation['faults'][number]['kind']
    readonly effect: string
    readonly foundBy: readonly InterruptionKind[]
  }[]
}
