// bullpen doctor --bullmq: examines an installation of plain BullMQ directly in its Redis, without an API, and without writing to it.
import { BullpenError } from '@bullpen/contract'
import { UsageError } from '../../../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../../../exit-codes.ts'
import { plain } from '../../../output/format.ts'
import type { CommandContext } from '../../command-context.ts'
import { examinationLines } from './examination-text.ts'

export async function examine({ values, out }: CommandContext, redisUrl: string): Promise<ExitCode> {
  // The client of Redis takes longer to load than the rest of the CLI.
  const { examineBullmq } = await import('@bullpen/bullmq/internal')
  try {
    const { prefix, queue } = values
    const examination = await examineBullmq(redisUrl, { prefix, queue })
    await out.answer(examination, (layout) => examinationLines(examination, layout))
    if (examination.queues.length === 0) out.remark('no queue of BullMQ was found')
    if (!examination.isComplete) {
      out.remark(
        'there were too many keys or queues to examine all of them; to examine one queue, use --prefix and --queue',
      )
    }
    return examination.findings.length === 0 ? EXIT.success : EXIT.incomplete
  } catch (error) {
    if (!(error instanceof BullpenError)) throw error
    const { code, message: detail } = error
    if (code === 'invalid_configuration') throw new UsageError(`--bullmq: ${detail}`)
    out.error({ code, detail }, [plain(`${code}: ${detail}`)])
    return code === 'redis_unavailable' ? EXIT.unreachable : EXIT.refused
  }
}
