import { definePipeline, PipelineError, runPipeline } from '@bullpen/pipeline'

const parse = (line: string): number => {
  const n = Number(line)
  if (Number.isNaN(n)) throw new Error(`'${line}' is not a number`)
  return n
}
const lines = ['1', 'two', '3', 'four']

// The first error cancels the rest, which is the default.
const strict = definePipeline('strict').source(lines).map(parse)
try {
  await runPipeline(strict)
} catch (error) {
  if (!(error instanceof PipelineError)) throw error
  console.log(error.code, error.stage, error.position)
  console.log(error.message)
}

// The other items continue, and the errors are returned with the output.
const lenient = definePipeline('lenient', { onError: 'collect' }).source(lines).map(parse)
const { output, errors, errorCount } = await runPipeline(lenient)
console.log(output, errorCount)
for (const { position, cause } of errors) console.log(position, String(cause))
