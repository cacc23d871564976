import { setTimeout as sleep } from 'node:timers/promises'
import { definePipeline, runPipeline } from '@bullpen/pipeline'

const failures = new Map([
  ['b.jpg', 1], // fails once
  ['d.jpg', 99], // always fails
])

async function upload(file: string): Promise<string> {
  const left = failures.get(file) ?? 0
  failures.set(file, left - 1)
  if (left > 0) throw new Error(`${file}: connection reset`)
  return `uploaded ${file}`
}

const uploads = definePipeline('uploads', { onError: 'collect' })
  .source((files: readonly string[]) => files)
  .map(upload, { concurrency: 2 })

let files = ['a.jpg', 'b.jpg', 'c.jpg', 'd.jpg']
for (let round = 1; files.length > 0 && round <= 3; round++) {
  const { output, errors } = await runPipeline(uploads, files)
  console.log(`round ${round}:`, output, `${errors.length} failed`)
  // The position of an error is that of its item in the source.
  files = errors.map(({ position }) => files[Number(position)] ?? '')
  await sleep(10 * 2 ** round)
}
if (files.length > 0) console.log('gave up:', files)
