// Counts and times the runs of pipelines. Labels are resolved only once per pipeline and stage, because items may be short.
import { fastCounter, fastHistogram } from './instruments.ts'
import { remembered } from './remembered.ts'

/** What a process has changed about a run. */
export interface ChangedRun {
  /** The name of the pipeline's definition, of which the catalogue has a bounded number. */
  readonly pipeline: string
  /** The items that have left a stage. Stages are numbered from 1. */
  readonly items: readonly { readonly stage: number; readonly outcome: string; readonly count: number }[]
  /** Set if the run has ended. */
  readonly ended: { readonly result: string; readonly durationMs: number } | undefined
}

export interface RunMetrics {
  changed(run: ChangedRun): void
  /** Returns the metrics in Prometheus's text format. */
  exposition(): string
}

export function runMetrics(): RunMetrics {
  const items = fastCounter('bullpen_run_items_total')
  const ends = fastCounter('bullpen_runs_ended_total')
  const durations = fastHistogram('bullpen_run_duration_seconds')
  const seriesOf = remembered((pipeline: string) => ({
    items: remembered((stage: number) =>
      remembered((outcome: string) => items.series({ pipeline, stage: String(stage), outcome })),
    ),
    ended: remembered((result: string) => ends.series({ pipeline, result })),
    duration: durations.series({ pipeline }),
  }))
  return {
    changed(run) {
      const series = seriesOf(run.pipeline)
      for (const { stage, outcome, count } of run.items) series.items(stage)(outcome).count += count
      if (run.ended === undefined) return
      series.ended(run.ended.result).count++
      series.duration.observe(run.ended.durationMs / 1_000)
    },
    exposition: () => `${[items, ends, durations].map((metric) => metric.exposition()).join('\n\n')}\n`,
  }
}
