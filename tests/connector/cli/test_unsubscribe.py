from pyspark_jms import cli


def test_unsubscribe_refuses_wrong_options_before_it_connects(capsys):
    command = ["unsubscribe", "--broker-url", "stomp://127.0.0.1:1", "--topic", "news", "--subscription-name", "s"]
    assert cli.main([*command, "--option", "broker=classic"]) == 1
    assert "[JMS_UNSUPPORTED] classic " in capsys.readouterr().err
    assert cli.main(command) == 1
    assert "[JMS_BROKER_UNREACHABLE]" in capsys.readouterr().err
