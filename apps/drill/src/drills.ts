// The drills by name.
import { cutoff } from './cutoff.ts'
import { kill } from './kill.ts'
import type { Report, Scale } from './report.ts'
import { deploy, long } from './rolling.ts'

export const DRILLS: Readonly<Record<string, (scale: Scale, seed: number) => Promise<Report>>> = {
  kill,
  deploy,
  long,
  cutoff,
}
