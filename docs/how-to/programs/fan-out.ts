import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { definePipeline, runPipeline, type StageContext } from '@bullpen/pipeline'

// The service, which notes how many requests it works on at a time.
let [open, most] = [0, 0]
const service = createServer((request, response) => {
  most = Math.max(most, ++open)
  setTimeout(() => {
    open--
    response.end(JSON.stringify({ city: request.url?.slice(1), degrees: (request.url?.length ?? 0) * 3 }))
  }, 100)
})
await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`

interface Weather {
  readonly city: string
  readonly degrees: number
}

async function fetchWeather(city: string, { signal }: StageContext): Promise<Weather> {
  const response = await fetch(`${url}/${city}`, { signal })
  if (!response.ok) throw new Error(`${city}: HTTP ${response.status}`)
  return (await response.json()) as Weather
}

const weather = definePipeline('weather')
  .source((cities: readonly string[]) => cities)
  .map(fetchWeather, { concurrency: 3 })

const cities = ['oslo', 'lima', 'kyoto', 'nairobi', 'quito', 'perth', 'dakar']
for (const { city, degrees } of await runPipeline(weather, cities)) console.log(city, degrees)
console.log(`at most ${most} requests at a time`)

service.close()
service.closeAllConnections()
