// Builds the reference page of the checks of a diagnosis.
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
  )
}
