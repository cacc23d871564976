import { definePipeline, type Pipeline, runPipeline } from '@bullpen/pipeline'

const gen = (...numbers: number[]) => definePipeline('squares').source(numbers)
const sq = <Input>(numbers: Pipeline<Input, number>) => numbers.map((n) => n * n)

console.log(await runPipeline(sq(sq(gen(2, 3)))))
