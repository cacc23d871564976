// The suites that every broker must pass, on BullMQ.
import { brokerConformance, brokerModel } from '@bullpen/testing'
import { openBullmq } from './backend.fixture.ts'

brokerConformance('BullMQ', openBullmq)
brokerModel('BullMQ', openBullmq, { time: 'real', seeds: { small: 60, full: 1_000 }, atOnce: 10 })
