// bullpen doctor: examines the platform. With --orphans, finds keys in Redis that belong to nothing.
import { UsageError } from '../../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { diagnosisLines } from '../../output/diagnosis-text.ts'
import type { CommandContext } from '../command-context.ts'
import { examineOrphans } from './orphans.ts'

export async function doctor(context: CommandContext): Promise<ExitCode> {
  const { values, out, connect } = context
  if (values.orphans) return await examineOrphans(context)
  if (values.delete || values.yes) throw new UsageError(`--${values.delete ? 'delete' : 'yes'} requires --orphans`)
  const diagnosis = await connect().diagnose()
  await out.answer(diagnosis, (layout) => diagnosisLines(diagnosis, layout))
  return diagnosis.findings.length === 0 ? EXIT.success : EXIT.incomplete
}
