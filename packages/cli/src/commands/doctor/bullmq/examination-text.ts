// Formats the examination of plain BullMQ as text: the queues with their figures, and then what was found.
import type { BullmqExamination, ExaminedQueue } from '@bullpen/bullmq/internal'
import { type Cell, type Layout, tableLines } from '../../../output/columns.ts'
import { diagnosisLines } from '../../../output/diagnosis-text.ts'
import { plain } from '../../../output/format.ts'

const COLUMNS = ['queue', 'waiting', 'active', 'delayed', 'waiting-children', 'completed', 'failed', 'workers']

export function examinationLines(examination: BullmqExamination, layout: Layout): readonly string[] {
  const { queues, findings } = examination
  const rows = [COLUMNS, ...queues.map(rowOf)]
  const named = findings.map((finding) => {
    const { prefix, queue, problem } = finding
    return queue === undefined ? finding : { ...finding, problem: `${prefix}:${queue}: ${problem}` }
  })
  return [
    ...(queues.length === 0 ? [] : [...tableLines(rows, { ...layout, indent: 0 }), '']),
    ...diagnosisLines({ ...examination, findings: named }, layout),
  ]
}

function rowOf(queue: ExaminedQueue): readonly Cell[] {
  const { waiting, prioritized, active, delayed, waitingChildren, completed, failed, workers } = queue
  const counts = [waiting + prioritized, active, delayed, waitingChildren, completed, failed]
  return [plain(`${queue.prefix}:${queue.queue}`), ...counts.map(String), workers === undefined ? '-' : String(workers)]
}
