// Builds the reference page of the checks of a diagnosis.
import { BULLMQ_CHECKS } from '../../../packages/bullmq/src/examination/risk-table.ts'
import { DIAGNOSIS_CHECKS } from '../../../packages/contract/src/http/diagnosis.ts'
import { CHECKS } from '../../../packages/engine/src/diagnosis/check-table.ts'
import { code, page, table } from './markdown.ts'

export function diagnosisPage(): string {
  return page(
    'Checks of bullpen doctor',
    `
\`bullpen doctor\` and \`GET /v1/diagnosis\` carry out these checks. A finding may say more precisely what to do. See
[Examine the platform](../how-to/examine-the-platform.md).`,
    table(
      ['check', 'finds that', 'why it matters', 'what to do'],
      DIAGNOSIS_CHECKS.map((check) => {
        const { finds, reason, advice } = CHECKS[check]
        return [code(check), finds, reason, advice]
      }),
    ),
    '## Checks of plain BullMQ',
    `
\`bullpen doctor --bullmq\` carries out these checks on each server and queue. The figures of jobs are those of a sample: up to 40 jobs of
each state, and 120 active ones. See [Examine plain BullMQ](../how-to/examine-the-platform.md#examine-plain-bullmq).`,
    table(
      ['check', 'finds that', 'why it matters', 'what to do'],
      Object.entries(BULLMQ_CHECKS).map(([check, { finds, reason, advice }]) => [code(check), finds, reason, advice]),
    ),
  )
}
