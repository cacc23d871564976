// Reads a filter for dead tasks from a request.
import type { DeadTaskFilter } from '@bullpen/contract'
import type { DeadFilter } from '@bullpen/engine/internal'

type Given = { readonly [K in keyof DeadTaskFilter]: DeadTaskFilter[K] | undefined }

/** Converts the times of a filter to milliseconds since 1970. */
export function deadFilter({ endedFrom, endedUntil, ...filter }: Given): DeadFilter {
  return {
    ...filter,
    endedFrom: endedFrom && Date.parse(endedFrom),
    endedUntil: endedUntil && Date.parse(endedUntil),
  } as DeadFilter
}
