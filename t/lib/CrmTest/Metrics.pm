# SPDX-License-Identifier: Apache-2.0
# CrmTest/Metrics.pm: reads a text in the format OpenMetrics 1.0, strictly
package CrmTest::Metrics;
use strict;
use warnings;
use Exporter qw(import);
our @EXPORT = qw(faults samples);

# Suffixes of a sample's name, by its family's type.
my %SUFFIX = (counter => qr/_total/, gauge => qr//, info => qr/_info/,
    histogram => qr/_bucket|_count|_sum/);
my $LABEL = qr/[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*"/;
my $NUMBER = qr/\d+(?:\.\d+)?/;

# Return what is wrong with TEXT, as lines.
sub faults {
    my ($text) = @_;
    my (@faults, %seen, %family, $name, %series);
    my $fault = sub { push @faults, "@_" };

    $fault->("no EOF at the end") unless $text =~ s/^# EOF\n\z//m;
    $fault->("no line feed at the end") unless $text =~ /\n\z/;
    for my $line (split /\n/, $text) {
        if ($line =~ /^# TYPE ([a-z]\w*) (\w+)$/) {
            ($name, my $type) = ($1, $2);
            $fault->("$line: twice") if $seen{$name}++;
            $fault->("$line: type") unless $SUFFIX{$type};
            $fault->("$line: prefix") unless $name =~ /^crmapid?_/;
            $fault->("$line: suffix") if $name =~ /_(?:total|info|count)$/;
            %family = (type => $type);
        }
        elsif ($line =~ /^# UNIT (\w+) (\w+)$/) {
            $fault->("$line: of another") if $1 ne ($name // "");
            $fault->("$line: name") if $1 !~ /_$2$/;
            $family{UNIT}++ and $fault->("$line: twice");
        }
        elsif ($line =~ /^# HELP (\w+) (\S.*)$/) {
            $fault->("$line: of another") if $1 ne ($name // "");
            $family{HELP}++ and $fault->("$line: twice");
        }
        elsif ($line =~ /^(\w+)(?:\{($LABEL(?:,$LABEL)*)\})? ($NUMBER)$/) {
            my ($sample, $labels, $value) = ($1, $2 // "", $3);
            my $suffix = $SUFFIX{$family{type} || ""} // qr/-/;
            $fault->("$line: of no family")
                unless $sample =~ /^\Q$name\E$suffix$/;
            $fault->("$line: twice") if $series{"$sample\{$labels}"}++;
            my %label = $labels =~ /(\w+)="((?:[^"\\]|\\.)*)"/g;
            $fault->("$line: a label twice") if keys(%label)
                != (() = $labels =~ /$LABEL/g);
        }
        else {
            $fault->("$line: neither metadata nor a sample");
        }
    }
    return (@faults, histogram_faults($text));
}

# Return what is wrong with the histograms in TEXT.
sub histogram_faults {
    my ($text) = @_;
    my (@faults, %last);

    for my $line (split /\n/, $text) {
        if ($line =~ /^(\w+)_bucket\{(?:(.*),)?le="([^"]+)"\} (\d+)$/) {
            my ($key, $le, $n) = ("$1 " . ($2 // ""), $3, $4);
            my $last = $last{$key} ||= { le => -1, n => 0 };
            push @faults, "$line: bound" unless $le eq "+Inf"
                || ($le =~ /^\d+\.\d+$/ && $le !~ /\d0$/
                    && $le > $last->{le} && $last->{le} ne "+Inf");
            push @faults, "$line: less than before" if $n < $last->{n};
            @$last{qw(le n)} = ($le, $n);
        }
        elsif ($line =~ /^(\w+)_count(?:\{(.*)\})? (\d+)$/) {
            my $last = $last{"$1 " . ($2 // "")} || { le => 0, n => -1 };
            push @faults, "$line: other than +Inf"
                if $last->{le} ne "+Inf" || $last->{n} != $3;
        }
    }
    return @faults;
}

# Return the samples of TEXT as { 'name{labels}' => value }.
sub samples {
    my ($text) = @_;
    return { $text =~ /^([a-z]\S*(?:\{.*\})?) (\S+)$/mg };
}

1;
