// Builds the reference page of the checks of a diagnosis.
import { readdirSync, readFileSync } from 'node:fs'
import { BULLMQ_CHECKS } from '../../../packages/bullmq/src/examination/risk-table.ts'
import { DIAGNOSIS_CHECKS } from '../../../packages/contract/src/http/diagnosis.ts'
import { CHECKS, type Check } from '../../../packages/engine/src/diagnosis/check-table.ts'
import { code, page, table } from './markdown.ts'

const RUNBOOKS = new URL('../../runbook/', import.meta.url)

export function diagnosisPage(): string {
  return page(
    'Checks of bullpen doctor',
    `
\`bullpen doctor\` and \`GET /v1/diagnosis\` carry out these checks. A finding may say more precisely what to do. See
[Diagnose an installation](../how-to/diagnose.md).`,
    table(
      ['check', 'finds that', 'why it matters', 'what to do', 'runbook'],
      DIAGNOSIS_CHECKS.map((check) => {
        const { finds, reason, advice, runbook }: Check = CHECKS[check]
        return [code(check), finds, reason, advice, runbook === undefined ? '' : runbookLink(runbook)]
      }),
    ),
    '## Checks of plain BullMQ',
    `
\`bullpen doctor --bullmq\` carries out these checks on each server and queue. Figures about jobs come from a sample: up to 40 jobs of
each state, and 120 active ones. See [Check a plain BullMQ installation](../how-to/diagnose.md#check-a-plain-bullmq-installation).`,
    table(
      ['check', 'finds that', 'why it matters', 'what to do'],
      Object.entries(BULLMQ_CHECKS).map(([check, { finds, reason, advice }]) => [code(check), finds, reason, advice]),
    ),
  )
}

/** Links to the page with this title. @throws Error if there is none. */
function runbookLink(title: string): string {
  const file = readdirSync(RUNBOOKS).find((each) =>
    readFileSync(new URL(each, RUNBOOKS), 'utf8').startsWith(`# ${title}\n`),
  )
  if (file === undefined) throw new Error(`docs/runbook has no page with the title ${title}`)
  return `[${title}](../runbook/${file})`
}
