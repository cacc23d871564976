// bullpen doctor: checks the installation. With --orphans, finds keys in Redis that belong to nothing. With --bullmq, checks plain BullMQ.
import { UsageError } from '../../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { diagnosisLines } from '../../output/diagnosis-text.ts'
import type { CommandContext } from '../command-context.ts'
import { examine as examineBullmq } from './bullmq/bullmq.ts'
import { examineOrphans } from './orphans.ts'

export async function doctor(context: CommandContext): Promise<ExitCode> {
  const { values, out, connect } = context
  if (values.bullmq !== undefined) {
    if (values.orphans) throw new UsageError('--orphans cannot be combined with --bullmq')
    return await examineBullmq(context, values.bullmq)
  }
  const narrowing = (['prefix', 'queue'] as const).find((option) => values[option] !== undefined)
  if (narrowing !== undefined) throw new UsageError(`--${narrowing} requires --bullmq`)
  if (values.orphans) return await examineOrphans(context)
  if (values.delete || values.yes) throw new UsageError(`--${values.delete ? 'delete' : 'yes'} requires --orphans`)
  const diagnosis = await connect().diagnose()
  await out.answer(diagnosis, (layout) => diagnosisLines(diagnosis, layout))
  return diagnosis.findings.length === 0 ? EXIT.success : EXIT.incomplete
}
